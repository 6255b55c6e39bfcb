"""A command group that imports a command only when it runs it, and is quiet where a shell expects quiet."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import IO, TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """Knows name, home and one line of help for each command; the rest is imported on use."""

    def __init__(self, *args: object, commands_at: dict[str, tuple[str, str]], **kwargs: object) -> None:
        """commands_at: name -> ("module:attribute", one line of help)."""
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._commands_at = commands_at

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        home = self._commands_at.get(cmd_name)
        if home is None:
            return None
        module, _, attribute = home[0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, home[1]) for name, home in self._commands_at.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self._commands_at:
            import difflib

            near = difflib.get_close_matches(args[0], list(self._commands_at), 1)
            hint = f" Did you mean {near[0]!r}?" if near else f" There are: {', '.join(self._commands_at)}."
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands with their lines of help, without importing any of them."""
        from click.shell_completion import CompletionItem

        items = [CompletionItem(name, help=text) for name, text in self.described(ctx) if name.startswith(incomplete)]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def described(self, ctx: click.Context) -> list[tuple[str, str]]:
        """The commands that a shell may complete, each with its line of help."""
        return [(name, home[1]) for name, home in self._commands_at.items()]


class Failure(click.ClickException):
    """What went wrong, for the end of the command."""

    def show(self, file: IO[str] | None = None) -> None:
        from moldau.cli.output import print_error

        print_error(self.message)


class RootGroup(LazyGroup):
    """The group at the top: turns what goes wrong below into a sentence and an exit code."""

    def described(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Kafka's tools are commands too; main() runs them without this group."""
        from moldau.cli.kafka.registry import TOOLS

        return [*super().described(ctx), *((name, "Kafka's tool of that name.") for name in sorted(TOOLS))]

    def invoke(self, ctx: click.Context) -> object:
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        try:
            result: object = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            ctx.exit(130)
        except BrokenPipeError:
            # Whoever read our output has had enough. What is still buffered must not fail again at exit.
            _silence_stdout()
            ctx.exit(141)
        except click.ClickException as error:
            if isinstance(error, click.UsageError):
                raise
            raise Failure(error.message) from error
        except (click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            from moldau.cli.explain import explain

            sentence = explain(error)
            if sentence is None:
                if os.environ.get("MOLDAU_DEBUG"):
                    raise
                sentence = (
                    f"Something unexpected happened: {type(error).__name__}: {error}. This is a bug in Moldau;"
                    " MOLDAU_DEBUG=1 shows where."
                )
            raise Failure(sentence) from error


def _silence_stdout() -> None:
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass  # not a real file, as under tests
