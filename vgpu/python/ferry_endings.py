"""How a script ends under `ferry run`: its traceback begins in the script, as Python's own does,
and a child process that asks for a device is told of (vgpu/run/ending.h).
"""

import os
import sys

import torch

FOLDER = os.path.dirname(os.path.abspath(__file__))


def is_launchers(file):
    return file == "<frozen runpy>" or os.path.dirname(file) == FOLDER


def hide_launcher():
    """An exception that ends the script is shown without the frames that it was started by. The
    script may have put a hook of its own in place: it is given the same.
    """
    show = sys.excepthook

    def show_scripts(kind, error, traceback):
        while traceback is not None and is_launchers(traceback.tb_frame.f_code.co_filename):
            traceback = traceback.tb_next
        show(kind, error.with_traceback(traceback), traceback)

    sys.excepthook = show_scripts


def note_forked_children(library):
    """A forked child has its parent's CUDA, and PyTorch refuses it there. One that asks for a
    device all the same is counted, as others are by the runtime (vgpu/runtime/asking.h).
    """
    def noting(function):
        def call(*arguments, **named):
            library.ferry_vgpu_note_asking()
            return function(*arguments, **named)
        return call

    def in_child():
        # C++ calls _lazy_init by its name as well: whatever begins CUDA passes there.
        for name in ("_lazy_init", "is_available", "device_count"):
            setattr(torch.cuda, name, noting(getattr(torch.cuda, name)))

    os.register_at_fork(after_in_child=in_child)
