"""Defects of docs/reliability.md, their mending undone one at a time: the test of each must fail.

The last lines of :data:`stress.mutants.MUTANTS`; a test is named with the file it stands in.
"""

from __future__ import annotations

_ONE: tuple[tuple[str, str, tuple[str, str]], ...] = (
    ("kernel/fit", "tests/test_defects.py::test_of_many_best_intercepts_the_middle_is_taken",
     ("return _centred(fit, rows) if fit_intercept else fit", "return fit")),
    ("convex/solver",
     "tests/test_defects.py::test_least_squares_without_a_penalty_on_a_wide_table_interpolates",
     ("if direct is None:\n            direct = _by", "if False:\n            direct = _by")),
    ("linear/plain",
     "tests/linear/test_plain.py::test_coef_in_own_units_gives_the_decision_function",
     ("= in_own_units(self.columns_, coef, fit.intercept)", "= coef, fit.intercept")),
    ("linear/design",
     "tests/linear/test_plain.py::"
     "test_a_narrow_column_far_from_zero_is_the_same_problem_in_any_order",
     ("2.0 * ((out / 2.0 - self.centre / 2.0) / self.scale)",
      "2.0 * (out / 2.0 / self.scale - self.centre / 2.0 / self.scale)")),
    ("linear/design", "tests/test_defects.py::test_a_subnormal_column_does_not_end_a_comparison",
     ("max(scale, LEAST_SCALE)", "scale")),
    ("additive/fit",
     "tests/additive/test_estimator.py::test_no_order_of_columns_or_rows_changes_the_model",
     ('columns = np.argsort(rows.column_keys, kind="stable")',
      "columns = np.arange(len(rows.column_keys))")),
    ("additive/fit",
     "tests/additive/test_estimator.py::test_no_order_of_columns_or_rows_changes_the_model",
     ("order = np.lexsort((weight, y, keys))", "order = np.arange(len(y))")),
    ("additive/tuning",
     "tests/additive/test_solver.py::test_weights_over_many_decades_end_in_a_certificate",
     ("HEAVY_ROW, LIGHT_SHARE = 1e6, 0.1", "HEAVY_ROW, LIGHT_SHARE = 1e6, 0.5")),
    ("additive/_numba_rows",
     "tests/additive/test_solver.py::"
     "test_rows_that_are_nearly_certain_keep_their_slopes_and_curvatures",
     ("residual[y[i], i] = -lacks", "residual[y[i], i] = h[y[i], i] - w")),
    ("choose/race",
     "tests/choose/test_laconic_classifier.py::test_an_interrupted_card_ends_the_comparison",
     ('if getattr(copy, "interrupted_", False):', "if False:")),
    ("choose/rule", "tests/choose/test_laconic_classifier.py::test_an_interruption_ends_the_fit",
     ("except ValueError as error:", "except (ValueError, KeyboardInterrupt) as error:")),
    ("_jit", "tests/core/test_jit.py::test_an_interrupted_first_use_leaves_later_ones_whole",
     ("        _fill_registries()\n", "")),
    ("_jit",
     "tests/core/test_jit.py::test_without_a_folder_for_the_cache_functions_are_compiled_anew",
     ('if "cannot cache function" not in str(error):', "if True:")),
    ("convex/principal_map",
     "tests/test_defects.py::test_axes_of_two_columns_have_a_sign_that_no_order_changes",
     ("tied = size >= (1.0 - 1e-9) * size", "tied = size >= size")),
    ("convex/risk",
     "tests/convex/test_convex_kernel.py::"
     "test_a_linear_kernel_has_the_coefficients_of_the_linear_model",
     ('if self.kernel == "linear":\n            points', "if False:\n            points")),
    ("convex/risk",
     "tests/convex/test_convex_kernel.py::"
     "test_a_linear_kernel_far_from_zero_is_certified_for_the_columns_as_they_are",
     ("centre = self._centre(table)", "centre = None")),
    ("export/model_file",
     "tests/export/test_model_file.py::test_a_model_without_probabilities_is_refused_by_name",
     ('hasattr(inner, "schema_") and not hasattr(inner, "predict_proba"):', "False:")),
    ("core/contract", "tests/test_contract.py::test_log_probabilities_are_logarithms",
     ("return log_of(self.predict_proba(X))", "return self.predict_proba(X)")),
    ("cli/app", "tests/cli/test_tables_cli.py::test_troubles_of_the_machine_are_one_line",
     ("    except MemoryError as error:", "    except ZeroDivisionError as error:")),
    ("convex/estimator",
     "tests/test_defects.py::test_a_hinge_that_learns_nothing_says_the_first_class_in_any_order",
     ("apart = 0.0 if hasattr", "apart = 0.0 if True or hasattr")),
    ("convex/ranking", "tests/test_defects.py::test_a_ranker_is_a_ranker",
     ('tags.estimator_type = "ranker"', "pass")),
    ("votes/estimator", "tests/test_defects.py::test_parameters_that_mean_nothing_are_refused",
     ('"delta": [Interval(Real, 0, 1, closed="neither")]', '"delta": [Real]')),
    ("minimax/prior_classifier",
     "tests/test_defects.py::test_minimax_priors_route_weights_to_the_model_inside",
     ("passed = passed_to_fit(self, sample_weight, fit_params)",
      'passed = {"sample_weight": fit_params["sample_weight"]}')),
    ("export/onnx_graph",
     "tests/export/test_export_onnx.py::test_skl2onnx_writes_bare_models_and_the_choice",
     ("return asked is True or (", "return False and (")),
    ("data/tables/chunks",
     "tests/data/test_csv_dialects.py::test_polars_is_not_loaded_where_it_has_no_room",
     ("and addresses_left() < POLARS_ADDRESSES:", "and False:")),
    ("kernel/kernels",
     "tests/kernel/test_gray_zone_kernel.py::test_a_linear_kernel_has_coefficients",
     ("return np.asarray(found.toarray() if issparse(found) else found, dtype=np.float64)",
      "return np.asarray(found, dtype=np.float64)")),
    ("job/table", "tests/cli/test_cli.py::test_a_folder_is_tried_without_touching_a_file_in_it",
     ("with tempfile.TemporaryFile(dir=folder):\n        pass",
      '(folder / ".laconic").touch(); (folder / ".laconic").unlink()')),
)  # fmt: skip
"""One change is enough."""

_SEVERAL: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
)  # fmt: skip
"""A second mending of the same file covers for the first: both are undone."""

MENDINGS = (*((file, test, (change,)) for file, test, change in _ONE), *_SEVERAL)
