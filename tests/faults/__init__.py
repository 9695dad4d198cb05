"""Runs under a fault injector: nothing of the user's changes, and a repaired run gives the same bits.

Every call of a run that changes a file is traced and can be made to go wrong: a full disk, an input/output
error, a file system that has become read-only, a kill, a write that is cut short. What must hold after each:

* every file that was there before is there as it was (name, kind, content, target of a link, permissions);
* OUT is absent, or the whole earlier result, or the whole new one;
* the run ended with one sentence, unless it was killed or did not need what failed;
* the same command again, without a fault, succeeds with the bits of a run that nothing disturbed, and leaves
  nothing in the folder beside OUT.

Then files that runs leave behind are damaged (emptied, cut in half, one byte turned), and are read or run over
again: right numbers or one sentence.

The quick form takes a sample of calls, the last ones always, and is part of the test suite::

    python -m pytest tests/faults

The long form takes every call and every kind of fault, and prints a table; it takes an hour and more::

    python tests/benchmarks/faults.py                                       # everything
    python tests/benchmarks/faults.py --scenarios run,continue --every 5      # every fifth call, two scenarios
    python tests/benchmarks/faults.py --scenarios run --number 120 --kind kill-before --keep /tmp/look

How to read a failure: ``run, call 120 of 431 (rename out.zarr), kill-before: OUT is damaged: state/c/0/0`` names the
scenario, the call that went wrong by its place in the trace, what it did to which path, the kind of fault, and which
promise was broken. The last command above does that one case again and keeps the folder to look at; ``--trace``
prints all calls of a scenario.

Where things are: ``injector.c`` is loaded with LD_PRELOAD and sees the calls of the C library; ``injector.py``
compiles and steers it; ``forks.py`` runs one job in a forked child; ``folders.py`` compares folders;
``scenarios.py`` says what is run; ``plans.py`` which faults befall it; ``campaign.py`` runs under them and judges;
``damage.py`` damages files; ``program.py`` is the program that does it all in a process of its own.
"""
