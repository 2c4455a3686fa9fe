# SPDX-License-Identifier: MIT
"""The tests of test_interop_clients.py that hold for every client over every transport."""

from test_interop_clients import (  # noqa: F401
    test_a_failed_tool_is_a_result,
    test_calls_everything,
    test_calls_modern,
    test_cancels_a_call_of_a_legacy_server,
    test_completes_arguments,
    test_connects,
    test_gets_prompts,
    test_list_changes,
    test_lists_merged_prompts,
    test_lists_merged_resources,
    test_lists_merged_templates,
    test_lists_merged_tools,
    test_ping_and_log_of_legacy_clients,
    test_progress_comes_in_order_before_the_result,
    test_reads_by_template,
    test_reads_resources,
    test_resource_updates,
    test_unknown_tool_is_32602,
)
