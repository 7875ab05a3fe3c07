"""Runs TFLite models: ``run_tflite.py DIRECTORY RESOLVER`` (LiteRT, or TensorFlow on Python 3.8).

DIRECTORY holds NAME.tflite and NAME.npz (inputs i0, i1, ...); writes NAME.out.npy, or NAME.error where it
refuses.
"""

import glob
import os
import sys

import numpy as np

try:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
except ImportError:
    from tensorflow.lite.python.interpreter import Interpreter, OpResolverType


def main(directory, resolver):
    for path in sorted(glob.glob(os.path.join(directory, "*.tflite"))):
        stem = path[: -len(".tflite")]
        try:
            with open(path, "rb") as file:
                interpreter = Interpreter(
                    model_content=file.read(), experimental_op_resolver_type=OpResolverType[resolver]
                )
            interpreter.allocate_tensors()
            inputs = np.load(stem + ".npz")
            for index, detail in enumerate(interpreter.get_input_details()):
                interpreter.set_tensor(detail["index"], inputs[f"i{index}"])
            interpreter.invoke()
            np.save(stem + ".out.npy", interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
        except Exception as error:
            with open(stem + ".error", "w") as file:
                file.write(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
