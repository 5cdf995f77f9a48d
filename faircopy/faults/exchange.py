"""An exchange whose answer does not leave at once: whoever asked for it decides what becomes of it."""

from __future__ import annotations

from collections.abc import Callable

from faircopy.net.exchange import Exchange, FromFiles, Response


class InterceptedExchange(Exchange):
    """Stands for another exchange. `when_answered` is called in place of sending the answer; `pass_on` sends
    it.
    """

    def __init__(self, real: Exchange, when_answered: Callable[[InterceptedExchange], object]) -> None:
        self.real = real
        super().__init__(real.connection, real.size, real.is_produce)
        self.is_gated = real.is_gated
        self._when_answered = when_answered

    @property
    def blocks_next(self) -> bool:
        """The connection looks at the real one."""
        return self.real.blocks_next

    @blocks_next.setter
    def blocks_next(self, blocks: bool) -> None:
        """Have the connection hold its next request, or not."""
        self.real.blocks_next = blocks

    @property
    def when_lost(self) -> Callable[[], None] | None:
        """The connection calls that of the real one."""
        return self.real.when_lost

    @when_lost.setter
    def when_lost(self, function: Callable[[], None] | None) -> None:
        """Have the connection call something else."""
        self.real.when_lost = function

    def answer(self, response: Response) -> None:
        """The request has taken effect, and this is its answer."""
        if not self.is_answered:
            self.is_answered = True
            self.response = response
            self._when_answered(self)

    def answer_from_files(self, response: FromFiles) -> None:
        self.is_from_files = True
        self.answer(response)

    def pass_on(self) -> None:
        """Send the answer."""
        self.real.is_from_files = self.is_from_files
        self.real.answer(self.response)
