"""Coordinators: event-sourced state machines over internal topics."""
