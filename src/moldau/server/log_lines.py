"""What a line of the log looks like: text for people, or one JSON object a line for what collects logs."""

from __future__ import annotations

import json
import logging
import os
import sys
import time

TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)
VARIABLE = "MOLDAU_LOG_FORMAT"


class JsonLines(logging.Formatter):
    """One object a line: time (UTC), level, logger, message, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def set_up_logging(level: str, form: str | None = None) -> None:
    """Without a form, that of the environment: processes that this one starts write as it does. Raises ValueError for a
    level or a form that there is not."""
    form = form or os.environ.get(VARIABLE) or TEXT
    if form not in FORMATS:
        raise ValueError(f"the log format is one of {', '.join(FORMATS)}, not {form!r}")
    if level.upper() not in logging.getLevelNamesMapping():
        raise ValueError(f"there is no log level {level!r}")
    os.environ[VARIABLE] = form
    if form == TEXT:
        text = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"
        logging.basicConfig(level=level.upper(), format=text, stream=sys.stderr)
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler])
