"""How near the package comes to OpenVINO's own low precision pass: node by node, on whole networks or single graphs."""
