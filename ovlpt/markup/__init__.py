"""Step 2: attributes tell the main step which precisions and which granularity each tensor may have."""
