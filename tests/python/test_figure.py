"""The script draws the figure of a step from its data, and from nothing else."""

import importlib.util
import json
import pathlib
import unittest
import xml.etree.ElementTree

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs/explanation"


def script():
    spec = importlib.util.spec_from_file_location("step_figure", FOLDER / "step_figure.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def op(name, begin, end, **more):
    return {"ph": "X", "tid": 1, "name": name, "ts": begin, "dur": end - begin, **more}


BACKWARD = "autograd::engine::evaluate_function: MmBackward0"


class Figure(unittest.TestCase):
    def setUp(self):
        self.figure = script()
        self.step = json.loads((FOLDER / "step.json").read_text(encoding="utf-8"))

    def test_the_figure_is_what_the_script_draws(self):
        drawn = (FOLDER / "step.svg").read_text(encoding="utf-8")
        self.assertEqual(self.figure.draw(self.step), drawn)

    def test_the_figure_is_xml_and_names_its_lanes(self):
        root = xml.etree.ElementTree.fromstring(self.figure.draw(self.step))
        texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
        self.assertLessEqual({"compute", "to the host", "from the host", "on the host"}, texts)

    def test_another_step_is_another_figure(self):
        self.step["to_host"][0][1] += 100_000
        self.assertNotEqual(self.figure.draw(self.step), (FOLDER / "step.svg").read_text("utf-8"))

    def test_of_a_trace_the_last_step_is_taken(self):
        events = [
            op("aten::embedding", 0, 10),
            op(BACKWARD, 20, 30),
            op("offload", 5, 8, args={"bytes": 1}),
            op("aten::embedding", 100_000, 100_010),
            op("aten::mm", 100_012, 100_500),
            op("aten::inner", 100_020, 100_030),
            op(BACKWARD, 103_000, 104_000),
            op("offload", 100_600, 100_700, args={"bytes": 4096}),
            op("reload", 102_000, 102_500, args={"bytes": 4096}),
        ]
        step = self.figure.extract({"traceEvents": events})
        self.assertEqual(step, {
            "forward": [[0, 500]],
            "backward": [[3000, 4000]],
            "to_host": [[600, 700, 4096]],
            "from_host": [[2000, 2500, 4096]],
        })
        self.assertEqual(self.figure.on_the_host(step), [(0, 0), (700, 4096), (2500, 0)])


if __name__ == "__main__":
    unittest.main()
