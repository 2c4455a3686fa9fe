# SPDX-License-Identifier: MIT
"""The collected public bug reports, each with its tests or with why it has none yet."""
import ast
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORDS = ["O-%03d" % n for n in range(1, 106)]

# Record to its tests, as NAME of test_o_NNN_NAME, in whichever file.
COVERED = {
    "O-001": "a_banner_before_everything noise_is_counted_under_its_name",
    "O-002": """coloured_noise_around_every_reply
        nothing_of_the_noise_can_act_on_a_terminal""",
    "O-003": "line_ends lines_that_end_in_cr_lf",
    "O-004": "a_byte_order_mark rubbish_before_initialize rubbish_first_on_a_connection",
    "O-005": "giant_lines",
    "O-006": "a_cut_at_every_offset",
    "O-007": "noise_that_begins_like_json",
    "O-008": "the_framing_of_another_protocol",
    "O-009": "arguments_reach_the_upstream_as_written",
    "O-010": """arguments_that_headers_mirror_must_be_there_once
        doubles_deep_in_arguments_pass_as_bytes nan_is_not_json
        what_decides_the_route_must_be_there_once""",
    "O-011": "a_lone_surrogate_in_a_key",
    "O-012": "depth",
    "O-013": "absent_arguments_stay_absent",
    "O-014": "equal_looking_ids_are_kept_apart two_clients_with_the_same_id",
    "O-015": "ids_come_back_with_value_and_type the_handshake_keeps_its_id_too",
    "O-016": "an_id_that_is_none ids_that_are_none",
    "O-017": """a_batch_is_answered_by_an_array a_batch_of_notifications_is_accepted
        batches_are_of_2025_03_26_alone no_batches_for_modern_clients_on_stdio
        no_batches_for_modern_clients_over_http no_batches_in_other_revisions
        the_empty_batch_is_refused""",
    "O-018": "every_token_comes_back_as_it_was",
    "O-019": "a_token_that_the_upstream_invented progress_that_nobody_asked_for",
    "O-020": """cancelled_of_a_session_ends_the_stream_empty
        the_end_of_a_modern_stream_cancels the_owner_alone_is_told_with_its_own_id""",
    "O-021": "a_late_answer_is_counted a_late_answer_is_dropped",
    "O-022": """a_call_to_a_remote_ends_at_its_limit
        a_call_without_an_answer_ends_at_its_limit""",
    "O-023": """pings_are_answered_by_us pings_of_a_remote_are_answered_by_us
        their_ids_do_not_meet_ours""",
    "O-024": "a_long_answer_becomes_a_stream_that_never_falls_silent",
    "O-025": "pages_are_drained",
    "O-026": "cursors_that_we_hand_out_work",
    "O-027": "a_repeated_cursor_ends_the_list",
    "O-028": "a_list_that_announces_itself",
    "O-029": "nothing_is_announced_when_nothing_changed",
    "O-030": "bare_names_that_collide the_same_name_twice",
    "O-031": """a_reload_sets_the_budget a_short_name_depends_on_its_tool_alone
        check_says_who_would_be_cut_by_a_client long_names names_fit_the_budget""",
    "O-032": """other_characters_are_mapped_reversibly
        what_looks_like_a_mapped_name_is_not_merged""",
    "O-033": "a_schema_without_type",
    "O-034": "null_in_a_schema",
    "O-035": "definitions_come_as_their_upstream_wrote_them",
    "O-036": "entries_that_are_no_tools_are_skipped",
    "O-037": "results_come_back_byte_for_byte results_of_a_modern_upstream_come_untouched",
    "O-038": "an_error_result_is_a_result",
    "O-039": "error_results_are_not_held_against_the_output_schema",
    "O-040": """blocks_of_every_kind_stay_as_they_are
        prompts_and_resources_keep_their_bytes""",
    "O-041": "what_we_do_not_own_is_all_there",
    "O-042": """an_unknown_tool_is_invalid_params two_unknown_tools_of_upstreams_say_32601
        unknown_tools""",
    "O-043": """methods_that_are_not_of_this_revision methods_that_no_legacy_session_has
        unknown_methods""",
    "O-044": "a_body_that_is_no_answer",
    "O-045": "a_uri_offered_twice_goes_to_the_first a_uri_that_nobody_has",
    "O-046": "updates_come_to_whoever_subscribed whoever_leaves_is_unsubscribed",
    "O-047": """an_unknown_ref_is_invalid_params an_upstream_without_completions
        completions_are_the_owners""",
    "O-048": "capabilities_are_the_union",
    "O-049": """an_owner_that_cannot_be_known_is_not_guessed
        modern_clients_are_asked_in_their_answers
        two_that_are_asked_at_once_by_one_that_is_known_to_ask""",
    "O-050": """roots_of_several_clients roots_of_the_only_client
        who_can_be_asked_nothing_is_not_asked""",
    "O-051": "an_upstream_that_declares_logging_and_has_no_method modern_has_no_set_level",
    "O-052": """a_closed_port_and_a_silent_one a_command_that_is_not_there
        one_that_gets_well_is_told_of one_that_is_broken_is_nobody_elses_business""",
    "O-053": """a_slow_first_start_is_waited_for_and_joins
        a_slow_start_is_waited_for_and_joins""",
    "O-054": "a_declared_list_that_is_no_method",
    "O-055": """a_revision_that_we_speak_or_the_latest_legacy_one
        malformed_revision_is_invalid_params""",
    "O-056": "the_upstream_sees_one_handshake",
    "O-057": "the_negotiated_revision_is_sent",
    "O-058": """initialized_comes_before_all_others_at_a_remote
        initialized_comes_before_other_requests""",
    "O-059": "a_session_that_is_forgotten_is_renewed calls_at_once_share_the_new_session",
    "O-060": """a_modern_request_with_a_stray_session_header_is_served
        requests_that_need_no_session_are_served_as_2025_03_26
        unknown_ids_are_not_found what_needs_a_session_is_refused_without_one""",
    "O-061": """sessions_that_are_left_expire sessions_that_are_only_left_are_small
        sessions_that_come_and_go_leave_nothing""",
    "O-062": """each_session_that_was_opened_is_ended idling_costs_the_server_nothing
        one_that_is_being_opened_is_ended""",
    "O-063": "ends_of_lines_of_every_kind",
    "O-064": "comments_are_none_of_our_business",
    "O-065": "events_that_are_no_messages_are_skipped they_are_counted",
    "O-066": """a_stream_that_breaks_again_is_resumed_from_where_it_was
        streams_of_modern_servers_are_not_resumed tries_are_bounded""",
    "O-067": "what_clients_accept",
    "O-068": "content_types content_types_of_remote_answers",
    "O-069": "hosts",
    "O-070": "every_method_is_guarded origins",
    "O-071": "bodies_that_are_compressed what_unpacks_to_too_much_is_refused",
    "O-072": "other_redirections_are_an_error redirections_at_home_are_followed",
    "O-073": "both_lengths_are_refused chunked_bodies chunked_bodies_of_modern_clients",
    "O-074": "what_has_no_answer_is_accepted_at_once",
    "O-075": """a_connection_that_has_ended_is_not_used_again
        a_connection_that_idled_is_not_trusted
        a_request_that_may_have_been_run_is_not_repeated""",
    "O-076": """each_notice_is_sent_at_once notices_are_passed_on_at_once
        notices_of_a_remote_are_passed_on_at_once""",
    "O-078": """a_hundred_requests_on_one_connection http_1_0
        pipelined_answers_come_in_order""",
    "O-079": """a_remote_without_a_stream_of_its_own get_and_the_version_that_it_names
        get_without_a_session_is_not_allowed""",
    "O-080": """a_launcher_and_its_server after_kill_9_of_mcpvisor_nobody_is_left
        one_child_is_stopped_with_all_that_it_started the_whole_group_is_ended""",
    "O-081": "stderr_is_always_drained",
    "O-082": "the_client_leaves_before_its_answer the_upstream_leaves_while_we_write",
    "O-083": """five_hundred_restarts_leak_nothing
        five_thousand_connections_and_no_descriptor_left restarts_leak_nothing""",
    "O-084": """a_crash_loop_is_given_up a_crash_loop_is_single_flight_with_growing_delay
        the_default_delays""",
    "O-085": """a_command_that_may_not_run a_directory_that_is_not_there
        no_more_descriptors no_more_processes
        what_cannot_be_started_fails_alone_and_is_tried_again""",
    "O-086": """a_bad_file_leaves_everything_in_place
        a_changed_upstream_is_replaced_and_no_other""",
    "O-087": """end_of_input_comes_first_and_what_is_left_over_is_told
        the_order_is_end_of_input_then_term_then_kill without_i_the_hint_is_given""",
    "O-088": """a_bad_variable_fails_that_upstream_by_name at_a_reload_the_old_one_goes_on
        json_in_a_string_is_used_as_it_is one_rule_for_env_and_args
        one_rule_for_url_and_headers what_is_not_there_is_an_error_of_a_remote
        secrets_are_not_printed the_same_in_every_option_that_is_expanded
        variables_in_env_and_args what_is_not_there_is_an_error_in_each_field""",
    "O-089": """a_command_that_is_not_on_the_path a_relative_command_and_its_directory
        own_variables_do_not_replace_the_rest
        the_command_is_found_on_the_childs_path
        the_command_is_looked_up_in_its_own_path
        what_is_not_found_is_named_with_its_path""",
    "O-090": "a_slow_call_holds_up_nobody",
    "O-091": "both_write_before_they_read",
    "O-092": "death_in_the_middle_of_an_answer kill_fails_exactly_its_calls_at_once",
    "O-093": "death_at_start_is_told_with_its_last_words",
    "O-094": """a_disabled_entry_is_not_started a_service_does_not_start_with_them
        an_error_names_its_file_line_and_key each_mistake_has_its_place
        every_error_is_told files_of_clients
        members_of_an_import_that_we_do_not_know_warn
        members_that_we_do_not_know_are_named the_same_name_twice_is_refused""",
    "O-095": "every_way_to_save",
    "O-096": "arguments_are_exactly_the_list",
    "O-097": "partial_and_failed_answers",
    "O-098": "errors_keep_all_that_they_had",
    "O-099": "death_by_probe_is_no_crash the_era_is_remembered_for_the_next_start",
    "O-100": """a_modern_error_of_a_remote_never_means_legacy
        a_remote_that_refuses_the_probe_is_legacy an_unsupported_revision_is_retried_once
        any_error_that_is_not_modern_means_legacy modern_errors_never_mean_legacy
        odd_answers_to_the_probe""",
    "O-101": "headers_are_of_what_is_sent",
    "O-102": """a_missing_key_is_invalid_params_and_named an_unsupported_revision
        header_and_meta_differ missing_meta_is_invalid_params
        no_meta_under_a_modern_header no_modern_sign_means_legacy_rules
        unsupported_revision""",
    "O-103": """a_legacy_client_is_asked_and_the_state_goes_back
        a_modern_question_and_its_state_pass_as_they_are""",
    "O-104": """on_our_shutdown_a_result_and_the_end the_acknowledged_subset
        the_acknowledged_subset_and_the_clean_up""",
    "O-105": """tools_of_a_remote_with_unusable_headers_are_withheld
        tools_with_unusable_headers_are_left_out_for_modern_http_alone""",
}

# Records without a test, and what has to be there first.
LEFT = {
    "O-077": "authorization at our endpoint",
}


def functions():
    """All test functions of this folder."""
    found = set()
    for path in HERE.glob("test_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found |= {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    return found


def test_each_record_has_its_tests_or_its_reason():
    assert [n for n in RECORDS if (n in COVERED) == (n in LEFT)] == []
    assert set(COVERED) | set(LEFT) == set(RECORDS)


def test_the_tests_that_are_named_exist():
    there = functions()
    named = {"test_%s_%s" % (n.lower().replace("-", "_"), one)
             for n, text in COVERED.items() for one in text.split()}
    assert all(COVERED.values()) and named - there == set()
    # And whoever writes one more names it here.
    assert {f for f in there if re.match(r"test_o_\d", f)} - named == set()


def table():
    """Each record with its tests, a line for each pair, or with what it waits for."""
    where = {}
    for path in sorted(HERE.glob("test_*.py")):
        for name in re.findall(r"^def (test_o_\d{3}_\w+)", path.read_text(encoding="utf-8"), re.M):
            where.setdefault(name[5:10].upper().replace("_", "-"), []).append(
                "%s::%s" % (path.name, name))
    return [(n, one) for n in RECORDS for one in where.get(n) or ["left: " + LEFT[n]]]


def test_the_table_of_records_and_tests():
    """Shown by pytest -s."""
    lines = table()
    print("\n".join("%s  %s" % pair for pair in lines))
    assert list(dict.fromkeys(n for n, _ in lines)) == RECORDS


def test_what_is_left_is_listed_for_readers():
    text = (HERE / "README.md").read_text(encoding="utf-8")
    listed = text.partition("## Reports that are left")[2].partition("\n## ")[0]
    assert set(re.findall(r"\bO-\d{3}\b", listed)) == set(LEFT)
