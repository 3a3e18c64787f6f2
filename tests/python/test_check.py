"""What torch_ferry.check refuses, rule by rule, as tests/formats/program_check_test.cpp has them.

Each case is the lines of a program after one header and two globals. Needs no torch.
"""

import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from torch_ferry.check import check  # noqa: E402
from torch_ferry.program import Code, Program, ProgramError  # noqa: E402

GLOBALS = """{"global":0,"kind":"parameter","name":"w","dtype":"f32","shape":[4,4],"grad":true}
{"global":1,"kind":"input","name":"x","dtype":"f32","shape":[4,4]}"""
MAIN = '{"code":0,"kind":"main"}'
BODY = '{"code":1,"kind":"body","arguments":[5],"saved":[6],"results":[5]}'
OP7 = '{"op":"a","in":[0,1],"out":[{"slot":7,"dtype":"f32","shape":[4,4]}]}'
USE7 = '{"op":"b","in":[7],"out":[]}'
NODE7 = '{"node":"N","id":0,"in":[0],"out":[7],"saved":[1],"body":1}'
FREE7 = '{"free":[7]}'
FIRST = '{"when":"first","count":1}'
AGAIN = '{"when":"recomputing","count":1}'
ENTER, LEAVE = '{"enter":"m"}', '{"leave":"m"}'
BEGIN, END = '{"exclude":"begin"}', '{"exclude":"end"}'
RAISE = '{"raise":"boom"}'


def program(lines):
    made = Program("p", globals=[json.loads(line) for line in GLOBALS.splitlines()])
    for line in map(json.loads, lines):
        if "code" in line:
            made.codes.append(Code(line))
        else:
            made.codes[-1].statements.append(line)
    return made


class Check(unittest.TestCase):
    def taken(self, *lines):
        check(program(lines))

    def refused(self, why, *lines):
        with self.assertRaisesRegex(ProgramError, why):
            check(program(lines))

    def test_keys_words_and_flags(self):
        op = '{"op":"dropout","in":[],"out":[],"random":%s}'
        self.taken(MAIN, op % "true", '{"ambient":1}', '{"stream":1}', '{"sync":[0,1]}')
        self.refused("'random' to be true or false", MAIN, op % "1")
        self.taken(MAIN, '{"op":"batch_norm","in":[],"out":[],"once":true}')
        self.refused("'once' to be true or false", MAIN,
                     '{"op":"batch_norm","in":[],"out":[],"once":1}')
        self.refused("'when' to be one of", MAIN, '{"when":"again","count":0}')
        self.refused("expected a key 'count'", MAIN, '{"when":"first"}')
        self.refused("'exclude' to be one of", MAIN, '{"exclude":"middle"}')
        self.taken(MAIN, '{"stream":1,"random":7,"unknown":1e400}')
        self.refused(r"\[from, to\]", MAIN, '{"sync":[0]}')
        self.refused("from 0", MAIN, OP7.replace("[4,4]", '[4,4],"offset":-1'))

    def test_signatures(self):
        segment = '{"code":1,"kind":"segment",%s}'
        self.refused("takes and returns nothing", MAIN.replace("}", ',"arguments":[5]}'))
        self.refused("only in a body", MAIN, segment % '"saved":[5]')
        self.refused("slot for each result", MAIN, segment % '"results":[null]')

    def test_a_slot_may_carry_only_an_edge(self):
        self.taken(MAIN, NODE7, OP7, USE7, BODY)
        self.taken(MAIN, OP7, NODE7, USE7, BODY)
        self.refused("before it is assigned", MAIN, NODE7, USE7, BODY)
        self.refused("before it is assigned", MAIN, NODE7, '{"record_use":7,"stream":1}', BODY)
        self.refused("assigned after its free", MAIN, NODE7, FREE7, OP7, BODY)
        self.refused("assigned after its free", MAIN, OP7, FREE7, NODE7, BODY)
        self.refused("no global", MAIN, OP7, '{"move":7}')

    def test_a_calls_options_are_those_of_a_recompute(self):
        def call(options):
            return (MAIN, '{"call":1,"in":[0,1],"out":[]%s}' % options,
                    '{"code":1,"kind":"segment","arguments":[5,6],"results":[]}')

        self.taken(*call(',"recompute":"reentrant","preserve_rng":false,"captured":0'))
        self.taken(*call(',"recompute":"checkpoint","early_stop":false,'
                         '"determinism_check":false,"captured":2'))
        self.taken(*call(',"recompute":"replay"'))
        self.taken(*call(',"recompute":"replay","captured":0'))
        for option in ("early_stop", "preserve_rng", "determinism_check"):
            self.taken(*call(f',"{option}":0'))
            self.refused("to be true or false", *call(f',"recompute":"checkpoint","{option}":0'))
        self.refused("'recompute' to be one of", *call(',"recompute":"sometimes"'))
        self.refused("3 captured", *call(',"recompute":"checkpoint","captured":3'))
        self.refused("-1 captured", *call(',"recompute":"checkpoint","captured":-1'))
        self.refused("checkpoint. alone", *call(',"recompute":"reentrant","captured":1'))

    def test_backward_gives_a_slot_to_the_gradient_of_each_input(self):
        self.taken(MAIN, '{"backward":[1],"inputs":[0],"out":[7]}', USE7, '{"backward":[7]}')
        self.refused("0 slots for the gradients of 1", MAIN, '{"backward":[1],"inputs":[0]}')
        self.refused("1 slots for the gradients of 0", MAIN, '{"backward":[1],"out":[7]}')
        self.refused("before it is assigned", MAIN, '{"backward":[1],"inputs":[8],"out":[7]}')
        self.refused("assigned twice", MAIN, OP7, '{"backward":[1],"inputs":[0],"out":[7]}')
        self.refused("expected a root", MAIN, '{"backward":[]}')

    def test_a_marked_call_was_handed_live_slots(self):
        enter = '{"enter":"m","arguments":[1,7,7]}'
        self.taken(MAIN, OP7, enter, LEAVE)
        self.taken(MAIN, NODE7, enter, LEAVE, BODY)  # an edge is enough
        self.refused("before it is assigned", MAIN, enter, LEAVE)
        self.refused("after its free", MAIN, OP7, FREE7, enter, LEAVE)

    def test_what_a_segment_needs_its_callers_have(self):
        segment = '{"code":1,"kind":"segment","arguments":[5],"results":[5]}'
        view = '{"view":6,"of":5,"dtype":"f32","shape":[%d]}'
        body = BODY.replace('"code":1', '"code":2')
        node = NODE7.replace('"body":1', '"body":2')
        call = '{"call":1,"in":[7],"out":[8]}'
        use8 = '{"op":"b","in":[8],"out":[]}'
        self.taken(MAIN, node, call, OP7.replace("7", "8"), segment, body)  # an edge passes through
        self.refused("slot 8 is used before", MAIN, node, call, use8, segment, body)
        self.refused("slot 7 is used before", MAIN, node, call, segment, view % 1, body)
        self.taken(MAIN, OP7, call, use8, segment, view % 16)
        self.refused("up to byte 68 of a storage of 64", MAIN, OP7, call, segment, view % 17,
                     '{"view":8,"of":6,"dtype":"f32","shape":[1]}')
        self.refused("up to byte 68 of a storage of 64", MAIN, OP7, call,
                     '{"view":9,"of":8,"dtype":"f32","shape":[17]}', segment)

    def test_a_view_of_a_view_is_within_the_storage(self):
        first = '{"view":8,"of":7,"dtype":"f32","shape":[1]}'
        second = '{"view":9,"of":8,"dtype":"f32","shape":[%d]}'
        self.taken(MAIN, OP7, first, second % 16)
        self.refused("up to byte 68 of a storage of 64", MAIN, OP7, first, second % 17)

    def test_no_call_reaches_itself(self):
        self.refused("code 1 calls itself", MAIN,
                     '{"code":1,"kind":"segment"}', '{"call":2,"in":[],"out":[]}',
                     '{"code":2,"kind":"segment"}', '{"call":1,"in":[],"out":[]}')

    def test_regions_nest(self):
        self.taken(MAIN, ENTER, BEGIN, END, LEAVE)
        self.taken(MAIN, ENTER, RAISE)  # user code left by an exception
        self.refused("leaves module 'm'", MAIN, LEAVE)
        self.refused("leaves an exclusion", MAIN, END)
        self.refused("leaves module 'n'", MAIN, ENTER, '{"leave":"n"}')
        self.refused("leaves module 'm'", MAIN, ENTER, BEGIN, LEAVE)
        self.refused("an exclusion is not left", MAIN, BEGIN)

    def test_a_when_holds_statements_that_are_there(self):
        self.taken(MAIN, OP7, AGAIN, USE7)
        self.taken(MAIN, '{"when":"first","count":0}')
        self.refused("no 1 statements", MAIN, AGAIN)
        self.refused("no 2 statements", MAIN, OP7, '{"when":"first","count":2}', USE7)
        self.refused("no -1 statements", MAIN, '{"when":"first","count":-1}', OP7)
        for outer in ("first", "recomputing"):
            self.refused("statement 2: is a when inside another", MAIN, OP7,
                         '{"when":"%s","count":2}' % outer, AGAIN, USE7)

    def test_a_when_cuts_no_region(self):
        self.taken(MAIN, ENTER, FIRST, OP7, LEAVE)
        self.taken(MAIN, '{"when":"recomputing","count":2}', ENTER, LEAVE)
        self.refused("'m' is not left under its when", MAIN, FIRST, ENTER, FIRST, LEAVE)
        self.refused("leaves an exclusion", MAIN, BEGIN, FIRST, END)
        self.refused("under its when, when this runs again", MAIN, AGAIN, ENTER)
        # What raises under a when is not sure to raise.
        self.taken(MAIN, '{"when":"first","count":2}', ENTER, RAISE)
        self.taken(MAIN, ENTER, FIRST, RAISE, LEAVE)
        self.refused("'m' is not left$", MAIN, ENTER, FIRST, RAISE)
        self.refused("under its when$", MAIN, RAISE, FIRST, ENTER)
        self.taken(MAIN, ENTER, RAISE, FIRST, OP7)

    def test_slots_are_right_in_each_way_that_a_code_runs(self):
        self.taken(MAIN, FIRST, OP7, AGAIN, OP7, USE7)
        self.taken(MAIN, FIRST, OP7, FIRST, USE7)
        self.refused("statement 2: slot 7 is used before it is assigned$", MAIN, AGAIN, OP7, USE7)
        self.refused("before it is assigned, when this runs again", MAIN, FIRST, OP7, USE7)
        self.refused("twice, when this runs again", MAIN, OP7, AGAIN, OP7)
        self.refused("after its free$", MAIN, OP7, FIRST, FREE7, USE7)
        self.refused("2 saved tensors of node 0.* runs again", MAIN, NODE7, OP7, AGAIN,
                     '{"save":0,"slots":[7]}', BODY)
        # Through a call: what it needs when it runs again, its caller has.
        view = '{"view":6,"of":5,"dtype":"f32","shape":[%d]}'
        self.refused("up to byte 68 of a storage of 64, when this runs again", MAIN, OP7,
                     '{"call":1,"in":[7],"out":[8],"recompute":"checkpoint"}',
                     '{"code":1,"kind":"segment","arguments":[5],"results":[6]}',
                     FIRST, view % 1, AGAIN, view % 17)


if __name__ == "__main__":
    unittest.main()
