"""The text of an error of a client library, without the secrets of the environment."""

import os
import re

SECRET = re.compile("SECRET|TOKEN|PASSWORD|ACCESS_KEY", re.IGNORECASE)
MAX_TEXT = 300  # characters


def first_line(error: Exception) -> str:
    """The first line of an error's text, or the name of its class; values of secret variables are shown as `***`.

    >>> os.environ["MY_TOKEN"] = "abcd1234"
    >>> first_line(ValueError("abcd1234 has expired\\nat 12:00"))
    '*** has expired'
    """
    text = str(error).strip().partition("\n")[0] or type(error).__name__
    for name, value in os.environ.items():
        if SECRET.search(name) and len(value) > 3:
            text = text.replace(value, "***")
    return text[:MAX_TEXT]
