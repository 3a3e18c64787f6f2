"""Takes care of how a script ends under `ferry run`.

Its traceback begins in the script, as under plain Python. A child process that asks for a device
is counted (vgpu/run/ending.h).
"""

import os
import sys

import torch

FOLDER = os.path.dirname(os.path.abspath(__file__))


def is_launchers(file):
    return file == "<frozen runpy>" or os.path.dirname(file) == FOLDER


def hide_launcher():
    """Shows an exception that ends the script without the launcher's frames. If the script has
    set an exception hook of its own, that hook gets the same shortened traceback.
    """
    show = sys.excepthook

    def show_scripts(kind, error, traceback):
        while traceback is not None and is_launchers(traceback.tb_frame.f_code.co_filename):
            traceback = traceback.tb_next
        show(kind, error.with_traceback(traceback), traceback)

    sys.excepthook = show_scripts


def note_forked_children(library):
    """Counts a forked child that asks for a device, as the runtime counts other child processes
    (vgpu/runtime/asking.h). It has its parent's CUDA, which PyTorch does not let it use.
    """
    def noting(function):
        def call(*arguments, **named):
            library.ferry_vgpu_note_asking()
            return function(*arguments, **named)
        return call

    def in_child():
        # C++ also calls _lazy_init by its name, so every start of CUDA passes through these.
        for name in ("_lazy_init", "is_available", "device_count"):
            setattr(torch.cuda, name, noting(getattr(torch.cuda, name)))

    os.register_at_fork(after_in_child=in_child)
