"""Docstrings find their places in what mypyc writes."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

from compiled_docs import docstrings, documented, insert

PYTHON = '''
class P:
    """Says "hello"?"""

    def send(self, topic):
        """One line.

        Another with \\\\ and …
        """

    @property
    def room(self):
        """How much."""

    def close(self):
        pass
'''

GENERATED = r"""
    {"room",
     (getter)m___P_get_room,
    NULL, NULL, NULL},
    {"send",
     (PyCFunction)CPyPy_m___P___send,
     METH_FASTCALL | METH_KEYWORDS, PyDoc_STR("send($self, topic=\'x\')\n--\n\n")},
    {"close",
     (PyCFunction)CPyPy_m___P___close,
     METH_FASTCALL | METH_KEYWORDS, PyDoc_STR("close($self)\n--\n\n")},
    .tp_doc = PyDoc_STR("P(a=None)\n--\n\n"),
"""

DOCUMENTED = r"""
    {"room",
     (getter)m___P_get_room,
    NULL, "How much.", NULL},
    {"send",
     (PyCFunction)CPyPy_m___P___send,
     METH_FASTCALL | METH_KEYWORDS, PyDoc_STR("send($self, topic=\'x\')\n--\n\n" "One line.\012\012Another with \134 and \342\200\246")},
    {"close",
     (PyCFunction)CPyPy_m___P___close,
     METH_FASTCALL | METH_KEYWORDS, PyDoc_STR("close($self)\n--\n\n")},
    .tp_doc = PyDoc_STR("P(a=None)\n--\n\n" "Says \042hello\042\077"),
"""  # noqa: E501


def test_docstrings_stand_behind_the_signatures() -> None:
    assert insert(GENERATED, dict(docstrings(PYTHON))) == DOCUMENTED


def test_a_module_in_a_folder_of_the_client_is_found(tmp_path: Path) -> None:
    (tmp_path / "client" / "produce").mkdir(parents=True)
    (tmp_path / "client" / "produce" / "m.py").write_text(PYTHON)
    generated = tmp_path / "__native_moldau___client___produce___m.c"
    generated.write_text(GENERATED)
    [copy] = documented([str(generated)], tmp_path)
    assert Path(copy).read_text() == DOCUMENTED
