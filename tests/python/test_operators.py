"""ONNX's own examples of its operators, with the results that it expects, executed one by one."""
import os
import warnings

import emplace
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
learned = [info.key for info in emplace.list_placers() if info.family == "learned"]
pytestmark = pytest.mark.skipif(not learned, reason="built without libtorch")

CORE = min(os.sched_getaffinity(0))
MACHINE = f"""format: emplace.cluster/1
name: one
devices:
  - {{name: a, kind: cpu, memory: 1GiB, runs_on: "cores {CORE}"}}
"""
MOST = 256  # elements of a constant that a graph holds


def examples():
    """By operator. Examples that the library's functions are unfolded in are left out."""
    kinds = {"float": float, "int": int, "bool": bool, "object": object}
    gone = [name for name in kinds if name not in vars(np)]
    for name in gone:  # numpy 1.24 and later have no such names
        setattr(np, name, kinds[name])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from onnx.backend.test.case.node import collect_testcases

            found = collect_testcases(None)
    except (ImportError, AttributeError, TypeError, ValueError):
        return {}
    finally:
        for name in gone:
            delattr(np, name)
    by_operator = {}
    for case in found:
        if "_expanded" not in case.name:
            by_operator.setdefault(case.model.graph.node[0].op_type, []).append(case)
    return by_operator


EXAMPLES = examples()
# Random results, and 16 bits that numpy holds as integers.
RANDOM = {"Bernoulli", "test_training_dropout", "test_training_dropout_default",
          "test_training_dropout_default_mask", "test_training_dropout_mask"}
OTHER = ("BFLOAT16", "FLOAT16", "STRING", "float16", "string")
# The extents that places are scaled by are those of the results, as PyTorch and ONNX Runtime have it, and no fractions.
ELSEWHERE = {"test_resize_downsample_scales_linear_align_corners"}

NO_COST_RULE = {"Adagrad", "Adam", "Momentum"}
NO_KERNEL = {"BitShift", "BlackmanWindow", "ConvInteger", "DFT", "DequantizeLinear", "Det", "DynamicQuantizeLinear",
             "HammingWindow", "HannWindow", "If", "MatMulInteger", "MaxUnpool", "MelWeightMatrix", "NonMaxSuppression",
             "OptionalGetElement", "OptionalHasElement", "QLinearConv", "QLinearMatMul", "QuantizeLinear", "RoiAlign",
             "Scan", "TfIdfVectorizer", "Unique"}
# What else is refused, and how.
REFUSED = {"test_loop11": "output 'slice_out' is float32 of unknown rank",
           "test_scan_sum": "Scan is supported from opset 9 on",
           "test_training_dropout_zero_ratio": "there is no kernel for training_mode without the output mask",
           "test_maxpool_with_argmax_2d_precomputed_strides": "there is no kernel for attribute storage_order 1",
           "test_resize_tf_crop_and_resize": "there is no kernel for attribute coordinate_transformation_mode",
           "test_maxpool_2d_uint8": "libtorch cannot compute it: \"max_pool2d\" not implemented for 'Long'"}
NEWEST = 17   # of the opsets whose operators are meant above
OLDEST = 6    # of those that have the operators that results are summed up with
LEAST = 590   # examples that run: 600 of ONNX 1.12's


def operator_of(case):
    return case.model.graph.node[0].op_type


def is_newer(operator):
    return all(schema.since_version > NEWEST for schema in onnx.defs.get_all_schemas_with_history()
               if schema.name == operator and not schema.domain)


def is_excused(case, error):
    operator = operator_of(case)
    no_kernel = f"operator '{operator}': there is no kernel for this operator" in error
    return (no_kernel and (operator in NO_KERNEL or is_newer(operator))
            or operator in NO_COST_RULE and "there is no cost rule for this operator" in error
            or operator == "Resize" and "there is no kernel for attribute mode 'cubic'" in error
            or case.name in REFUSED and REFUSED[case.name] in error)


def is_plain(arrays):
    return all(isinstance(a, (np.ndarray, np.generic)) and a.dtype.kind in "fiub" and 0 < a.size <= MOST
               and np.isfinite(a).all() for a in arrays)


def parts_of(case, prefix):
    """The example's nodes, under names of its own, with what sums its results up, each by a factor of its own; its
    values' types, the name of the sum, and the sum that is expected."""
    make, array_of = onnx.helper.make_node, onnx.numpy_helper.from_array
    inputs, outputs = case.data_sets[0]
    graph = onnx.GraphProto()
    graph.CopyFrom(case.model.graph)
    nodes = [make("Constant", [], [value.name], value=array_of(np.asarray(array)))
             for value, array in zip(graph.input, inputs)] + list(graph.node)
    expected, parts, types = 0.0, [], []
    for value, array in zip(graph.output, outputs):
        numbers, name = np.asarray(array, dtype=np.float64).reshape(-1), value.name
        factors = np.sin(np.arange(1, numbers.size + 1)).astype(np.float32)
        expected += float((numbers * factors).sum())
        types.append(onnx.helper.make_tensor_value_info(prefix + name, value.type.tensor_type.elem_type,
                                                        np.shape(array)))
        parts.append(name + "_sum")
        nodes += [make("Constant", [], [name + "_factors"], value=array_of(factors)),
                  make("Constant", [], [name + "_flat"], value=array_of(np.array([-1], np.int64))),
                  make("Reshape", [name, name + "_flat"], [name + "_row"]),
                  make("Cast", [name + "_row"], [name + "_real"], to=1),
                  make("Mul", [name + "_real", name + "_factors"], [name + "_product"]),
                  make("ReduceSum", [name + "_product"], [name + "_sum"], keepdims=0)]
    nodes.append(make("Sum", parts, ["whole_sum"]))
    for node in nodes:
        node.name = ""
        for names in (node.input, node.output):
            names[:] = [name and prefix + name for name in names]
    return nodes, types, prefix + "whole_sum", expected


def run_together(cases, folder):
    """The sum of all examples' sums, and the one that is expected."""
    model = onnx.ModelProto()
    model.CopyFrom(cases[0].model)
    for opset in model.opset_import:
        if not opset.domain:
            opset.version = max(opset.version, OLDEST)
    for field in (model.graph.input, model.graph.node, model.graph.output):
        del field[:]
    expected, losses = 0.0, []
    for i, case in enumerate(cases):
        nodes, types, loss, wanted = parts_of(case, f"{i}/")
        model.graph.node.extend(nodes)
        model.graph.value_info.extend(types)
        losses.append(loss)
        expected += wanted * (1 + i % 7)
        scale = onnx.numpy_helper.from_array(np.float32(1 + i % 7))
        model.graph.node.extend([onnx.helper.make_node("Constant", [], [loss + "_scale"], value=scale),
                                 onnx.helper.make_node("Mul", [loss, loss + "_scale"], [loss + "_scaled"])])
    model.graph.node.append(onnx.helper.make_node("Sum", [loss + "_scaled" for loss in losses], ["loss"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("loss", 1, []))
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    problem = emplace.compile(emplace.read_model(path), emplace.Cluster.from_yaml(MACHINE))
    return emplace.run(problem, steps=1, warm_up=0, numbers="float64").losses[0], expected


def wrong_ones(cases, folder, excused):
    """The examples that do not have their results, but for those that are excused, whose operators are noted."""
    try:
        found, expected = run_together(cases, folder)
        if found == pytest.approx(expected, rel=1e-6, abs=1e-3):
            return {}
        if len(cases) == 1:
            return {cases[0].name: (found, expected)}
    except emplace.Error as error:
        if len(cases) == 1 and is_excused(cases[0], str(error)):
            excused.append(operator_of(cases[0]))
            return {}
        if len(cases) == 1:
            return {cases[0].name: str(error)}
    half = len(cases) // 2
    return {**wrong_ones(cases[:half], folder, excused), **wrong_ones(cases[half:], folder, excused)}


def versions(cases):
    by_version = {}
    for case in cases:
        inputs, outputs = case.data_sets[0]
        left_out = {operator_of(case), case.name} & (RANDOM | ELSEWHERE) or any(word in case.name for word in OTHER)
        if not left_out and outputs and is_plain(inputs) and is_plain(outputs):
            opsets = tuple((opset.domain, opset.version) for opset in case.model.opset_import)
            by_version.setdefault(opsets, []).append(case)
    return by_version.values()


LETTERS = sorted({operator[0] for operator in EXAMPLES})
tried, excused_by_letter = {}, {}
needs_examples = pytest.mark.skipif(not EXAMPLES, reason="this onnx has no examples, or they need another numpy")


@needs_examples
@pytest.mark.parametrize("letter", LETTERS)
def test_examples_have_the_results_that_onnx_expects(letter, tmp_path):
    cases = [case for operator in EXAMPLES if operator[0] == letter for case in EXAMPLES[operator]]
    wrong, excused, count = {}, [], 0
    for together in versions(cases):
        wrong.update(wrong_ones(together, tmp_path, excused))
        count += len(together)
    assert not wrong
    tried[letter], excused_by_letter[letter] = count, excused
    # Whoever adds a kernel or a cost rule takes the operator out of these.
    known = (NO_KERNEL | NO_COST_RULE) & {operator_of(case) for together in versions(cases) for case in together}
    assert known <= set(excused)


@needs_examples
def test_most_examples_run():
    if sorted(tried) != LETTERS:
        pytest.skip("not all examples were tried, or some are wrong")
    assert sum(tried.values()) - sum(map(len, excused_by_letter.values())) >= LEAST
