"""Applications of a simulated cluster whose transactions somebody outside decides (KIP-939).

The instance prepares its transaction and notes the decision in a store of its own, as a database would; from then on it
must be carried out, whoever dies. The next instance keeps what it finds prepared and ends it as the store says.
"""

from __future__ import annotations

from moldau.client.produce.transaction_states import State
from moldau.client.results import PreparedTransaction
from moldau.sim.transactions.application import Application, GaveUp, Instance, Script
from moldau.sim.transactions.ledger import ABORT, COMMIT, Attempt

NOTHING_NOTED = PreparedTransaction(-1, -1)
FLUSH_MS_MAX = 6000


class TwoPhaseInstance(Instance):
    application: TwoPhaseApplication

    def run(self) -> Script:
        # The store is told first: whoever had it before can note nothing any more.
        self.application.owner = self
        yield from self._wait(self.process.init(keep_prepared=True))
        self._note_epoch()
        manager = self.process.manager
        if manager.state is State.PREPARED:
            yield from self._complete_predecessor()
        else:
            self.ledger.on_begun(manager.producer_id, manager.producer_epoch)
        while not self.setting.quiet:
            yield from self._transaction(self._fill)

    def _complete_predecessor(self) -> Script:
        noted, attempt = self.application.noted, self.application.attempt
        found = self.process.manager.prepared
        self.world.note(f"{self.name} finds {found} prepared, noted is {noted}, {attempt!r}")
        self._check_store()
        yield from self._wait(self.process.complete(noted))
        if found != noted and attempt is not None and not attempt.told:
            self.ledger.on_told(attempt, ABORT)

    def _check_store(self) -> None:
        """Who was stopped for long may be the coordinator's newest instance and yet not the store's."""
        if self.application.owner is not self:
            raise GaveUp("somebody else has the store")

    def _end(self, attempt: Attempt) -> Script:
        process, application = self.process, self.application
        deadline_ms = self.world.now_ms + FLUSH_MS_MAX
        while process.is_holding_batches:
            if self.world.now_ms > deadline_ms:
                raise GaveUp("batches are not delivered")
            process.manager.check_sending()
            yield
        prepared = process.prepare()
        yield
        self._check_store()
        application.attempt = attempt
        attempt.wanted = self._wish()
        if attempt.wanted == COMMIT:
            application.noted = prepared
            self.ledger.on_told(attempt, COMMIT)
        self.world.note(f"{self.name} has prepared {prepared} of {attempt!r}")
        yield
        yield from self._wait(process.complete(application.noted))
        if attempt.wanted == ABORT:
            self.ledger.on_told(attempt, ABORT)


class TwoPhaseApplication(Application):
    """`noted` is the last decision to commit; whatever else is found prepared was not decided."""

    is_two_phase = True

    owner: TwoPhaseInstance | None = None
    noted = NOTHING_NOTED
    attempt: Attempt | None = None

    def new_instance(self) -> Instance:
        return TwoPhaseInstance(self, self.started)
