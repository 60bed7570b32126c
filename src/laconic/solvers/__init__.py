"""How it is minimised: functions that return a :class:`~laconic.solvers.solution.Solution`."""
