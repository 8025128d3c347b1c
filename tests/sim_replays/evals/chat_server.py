"""A stand-in of a model's server, whose replies a test chooses."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from tests.norm_core.engines.fake_server import Answer, FakeServer

MODEL = "openai-api/local/stand-in"


class ChatServer(FakeServer):
    """Replies what `reply` makes of a prompt; a mapping gives fields of the choice too."""

    def __init__(self, reply: Callable[[str], str | dict[str, Any]]) -> None:
        super().__init__()
        self.reply = reply
        self.serves: Callable[[], str] = lambda: "stand-in-1"
        self.prompts: list[str] = []

    def complete(self, body: Answer) -> tuple[int, Answer]:
        content = body["messages"][-1]["content"]
        text = content if isinstance(content, str) else content[-1]["text"]
        self.prompts.append(text)
        reply = self.reply(text)
        fields = {"content": reply} if isinstance(reply, str) else dict(reply)
        message = {"role": "assistant", "content": fields.pop("content")}
        choice = {"index": 0, "message": message, "finish_reason": "stop", **fields}
        usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
        plain = {"id": "x", "object": "chat.completion", "created": 0, "model": self.serves(), "choices": [choice]}
        return 200, {**plain, "usage": usage}


@contextmanager
def serve_replies(reply: Callable[[str], str | dict[str, Any]]) -> Iterator[ChatServer]:
    """Serve replies from a thread of this process."""
    with ChatServer(reply) as chat:
        thread = Thread(target=chat.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield chat
        chat.shutdown()
        thread.join()
