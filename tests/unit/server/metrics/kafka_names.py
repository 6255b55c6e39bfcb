"""The names under which exporters show the metrics of Apache Kafka 4.3's brokers and controllers, and those of the two
exporters for topics and groups; and which of them Moldau does not have, and why."""

from __future__ import annotations

from typing import Final

_BY_PREFIX: Final = {
    "kafka_server_brokertopicmetrics": (
        "bytesin_total messagesin_total bytesout_total bytesrejected_total totalproducerequests_total"
        " failedproducerequests_total totalfetchrequests_total failedfetchrequests_total replicationbytesin_total"
        " replicationbytesout_total reassignmentbytesin_total reassignmentbytesout_total"
        " producemessageconversions_total fetchmessageconversions_total nokeycompactedtopicrecords_total"
        " invalidmagicnumberrecords_total invalidmessagecrcrecords_total invalidoffsetorsequencerecords_total"
        " totalsharefetchrequests_total failedsharefetchrequests_total totalshareacknowledgementrequests_total"
        " failedshareacknowledgementrequests_total remotefetchbytes_total remotecopybytes_total"
    ),
    "kafka_server_replicamanager": (
        "leadercount partitioncount offlinereplicacount underreplicatedpartitions underminisrpartitioncount"
        " atminisrpartitioncount reassigningpartitions partitionswithlatetransactionscount produceridcount"
        " isrexpands_total isrshrinks_total failedisrupdates_total"
    ),
    "kafka_cluster_partition": (
        "underreplicated underminisr atminisr insyncreplicascount replicascount laststableoffsetlag"
    ),
    "kafka_log_log": "size numlogsegments logstartoffset logendoffset retentionsizeinpercent",
    "kafka_log_logmanager": (
        "offlinelogdirectorycount cordonedlogdirectorycount logdirectoryoffline remaininglogstorecover"
        " remainingsegmentstorecover"
    ),
    "kafka_log_logflushstats": "logflushrateandtimems logflushrateandtimems_count",
    "kafka_log_logcleaner": (
        "max_clean_time_secs max_buffer_utilization_percent cleaner_recopy_percent max_compaction_delay_secs"
        " deadthreadcount"
    ),
    "kafka_log_logcleanermanager": (
        "max_dirty_percent time_since_last_run_ms uncleanable_partitions_count uncleanable_bytes"
    ),
    "kafka_network_requestmetrics": (
        "requests_total errors_total deprecatedrequests_total requestbytes requestqueuetimems localtimems remotetimems"
        " responsequeuetimems responsesendtimems totaltimems throttletimems messageconversionstimems"
        " temporarymemorybytes totaltimems_count"
    ),
    "kafka_network_requestchannel": "requestqueuesize responsequeuesize",
    "kafka_network_socketserver": (
        "networkprocessoravgidle_percent memorypoolavailable memorypoolused expiredconnectionskilledcount"
    ),
    "kafka_network_processor": "idle_percent",
    "kafka_network_acceptor": "acceptorblocked_percent",
    "kafka_server_kafkarequesthandlerpool": (
        "requesthandleravgidle_percent brokerrequesthandleravgidle_percent controllerrequesthandleravgidle_percent"
    ),
    "kafka_server_socket_server_metrics": (
        "connection_count connection_creation_total connection_creation_rate connection_close_total"
        " connection_close_rate incoming_byte_total incoming_byte_rate outgoing_byte_total outgoing_byte_rate"
        " network_io_total network_io_rate request_total request_rate response_total response_rate request_size_avg"
        " request_size_max io_wait_ratio io_ratio io_time_ns_avg io_wait_time_ns_avg select_total select_rate"
        " successful_authentication_total successful_authentication_rate failed_authentication_total"
        " failed_authentication_rate successful_reauthentication_total failed_reauthentication_total"
        " reauthentication_latency_avg reauthentication_latency_max successful_authentication_no_reauth_total"
        " expired_connections_killed_count connections_software connections_tls_info connection_accept_rate"
    ),
    "kafka_server_kafkaserver": "brokerstate clusterid linux_disk_read_bytes linux_disk_write_bytes",
    "kafka_server_delayedoperationpurgatory": "purgatorysize numdelayedoperations",
    "kafka_server_delayedfetchmetrics": "expires_total",
    "kafka_server_delayedproducemetrics": "expires_total",
    "kafka_server_fetchsessioncache": (
        "numincrementalfetchsessions numincrementalfetchpartitionscached incrementalfetchsessionevictions_total"
    ),
    "kafka_server_replicafetchermanager": "maxlag minfetchrate failedpartitionscount deadthreadcount",
    "kafka_server_fetcherlagmetrics": "consumerlag",
    "kafka_server_fetcherstats": "bytes_total requests_total",
    "kafka_server_broker_metadata_metrics": (
        "last_applied_record_offset last_applied_record_timestamp last_applied_record_lag_ms metadata_load_error_count"
        " metadata_apply_error_count ignored_static_voters"
    ),
    "kafka_server_forwardingmanager": (
        "queuetimems_p99 queuetimems_p999 remotetimems_p99 remotetimems_p999 queuelength"
    ),
    "kafka_controller_kafkacontroller": (
        "activecontrollercount offlinepartitionscount preferredreplicaimbalancecount globaltopiccount"
        " globalpartitioncount fencedbrokercount activebrokercount controlledshutdownbrokercount"
        " brokerregistrationstate metadataerrorcount ignoredstaticvoters lastappliedrecordoffset"
        " lastcommittedrecordoffset lastappliedrecordtimestamp lastappliedrecordlagms timedoutbrokerheartbeatcount"
        " eventqueueoperationsstartedcount eventqueueoperationstimedoutcount newactivecontrollerscount"
        " timesincelastheartbeatreceivedms"
    ),
    "kafka_controller_controllerstats": "uncleanleaderelections_total electionfromeligibleleaderreplicas_total",
    "kafka_controller_controllereventmanager": "eventqueuetimems eventqueueprocessingtimems avgidleratio",
    "kafka_server_raftmetrics": (
        "current_state current_leader current_vote current_vote_directory_id current_epoch high_watermark"
        " log_end_offset log_end_epoch commit_latency_avg commit_latency_max election_latency_avg election_latency_max"
        " fetch_records_rate append_records_rate poll_idle_ratio_avg number_unknown_voter_connections number_of_voters"
        " number_of_observers uncommitted_voter_change"
    ),
    "kafka_server_raftchannelmetrics": "incoming_byte_total outgoing_byte_total request_total response_total",
    "kafka_coordinator_group_groupmetadatamanager": (
        "numoffsets numgroups numgroupspreparingrebalance numgroupscompletingrebalance numgroupsstable numgroupsdead"
        " numgroupsempty"
    ),
    "kafka_server_group_coordinator_metrics": (
        "group_count consumer_group_count share_group_count streams_group_count offset_commit_rate offset_commit_count"
        " offset_expiration_rate offset_expiration_count offset_deletion_rate offset_deletion_count"
        " group_completed_rebalance_rate group_completed_rebalance_count consumer_group_rebalance_rate"
        " consumer_group_rebalance_count share_group_rebalance_rate share_group_rebalance_count"
        " streams_group_rebalance_rate streams_group_rebalance_count num_partitions partition_load_time_max"
        " partition_load_time_avg thread_idle_ratio_avg event_queue_size event_queue_time_ms_max"
        " event_processing_time_ms_max event_purgatory_time_ms_max batch_linger_time_ms_max batch_flush_time_ms_max"
        " batch_flush_rate batch_buffer_cache_size_bytes batch_buffer_cache_discard_count background_queue_time_ms_max"
        " background_processing_time_ms_max background_thread_idle_ratio_avg"
    ),
    "kafka_server_share_coordinator_metrics": (
        "write_rate write_total write_latency_avg write_latency_max last_pruned_offset num_partitions"
        " partition_load_time_max partition_load_time_avg event_queue_size"
    ),
    "kafka_server_transaction_coordinator_metrics": "partition_load_time_avg partition_load_time_max",
    "kafka_coordinator_transaction_transactionmarkerchannelmanager": (
        "unknowndestinationqueuesize logappendretryqueuesize"
    ),
    "kafka_server_addpartitionstotxnmanager": (
        "verificationfailurerate_count verificationtimems verificationtimems_count"
    ),
    "kafka_server_client_metrics": "instance_count unknown_subscription_request_count",
    "kafka_topic": "partitions",
    "kafka_topic_partition": (
        "current_offset oldest_offset leader replicas in_sync_replica leader_is_preferred under_replicated_partition"
    ),
    "kafka_consumergroup": (
        "current_offset current_offset_sum lag lag_sum members group_offset group_lag group_lag_seconds group_max_lag"
        " group_max_lag_seconds group_sum_lag group_topic_sum_lag poll_time_ms"
    ),
    "kafka_partition": "latest_offset earliest_offset",
    "kafka": "brokers broker_info",
}
KAFKA_NAMES: Final = tuple(f"{prefix}_{name}" for prefix, names in _BY_PREFIX.items() for name in names.split())

LEFT_OUT: Final = {
    "kafka_server_brokertopicmetrics_remote…": "there is no tiered storage",
    "kafka_log_logmanager_remainingsegmentstorecover": "recovery counts logs, not their segments",
    "kafka_network_requestmetrics_deprecatedrequests_total": "no version that is served is deprecated",
    "kafka_network_requestmetrics_messageconversionstimems": "record batches are never converted",
    "kafka_network_requestmetrics_temporarymemorybytes": "record batches are never converted",
    "kafka_network_socketserver_memorypool…": "there is no pool: a connection has bounds of its own",
    "kafka_server_socket_server_metrics_request_size_…": "see kafka_network_requestmetrics_requestbytes, by API",
    "kafka_server_socket_server_metrics_io_wait_time_ns_avg": "see io_wait_ratio",
    "kafka_server_socket_server_metrics_select_rate": "rate() of select_total",
    "kafka_server_socket_server_metrics_successful_authentication_rate": "rate() of the total",
    "kafka_server_socket_server_metrics_failed_authentication_rate": "rate() of the total",
    "kafka_server_socket_server_metrics_reauthentication_latency_…": "see totaltimems of SaslAuthenticate",
    "kafka_server_socket_server_metrics_successful_authentication_no_reauth_total": "clients are not told apart by it",
    "kafka_server_kafkaserver_clusterid": "it is a text; kafka_partition_latest_offset has it as cluster_name",
    "kafka_server_group_coordinator_metrics_thread_idle_ratio_avg": "one event loop, see requesthandleravgidle_percent",
    "kafka_server_group_coordinator_metrics_event_…": "there is no queue of events: one event loop, see moldau_loop_…",
    "kafka_server_group_coordinator_metrics_batch_…": "records are written at once, nothing lingers",
    "kafka_server_group_coordinator_metrics_background_…": "there are no background threads",
    "kafka_server_share_coordinator_metrics_write_rate": "rate() of write_total",
    "kafka_server_share_coordinator_metrics_write_latency_…": "see totaltimems of WriteShareGroupState",
    "kafka_server_share_coordinator_metrics_event_…": "there is no queue of events: one event loop, see moldau_loop_…",
    "kafka_consumergroup_poll_time_ms": "nobody polls: the broker knows the offsets",
}
"""A name that ends with … stands for all that begin so."""

ONLY_WHEN: Final = {
    "kafka_controller_controllereventmanager_eventqueuetimems": "after requests to the controller's listener",
    "kafka_controller_controllereventmanager_eventqueueprocessingtimems": "after requests to the controller's listener",
    "kafka_log_logmanager_remaininglogstorecover": "while a broker opens its logs",
    "kafka_server_client_metrics_instance_count": "with moldau.client.telemetry.enable",
    "kafka_server_client_metrics_unknown_subscription_request_count": "with moldau.client.telemetry.enable",
    "kafka_server_socket_server_metrics_connections_tls_info": "with TLS",
    "kafka_server_socket_server_metrics_successful_authentication_total": "with TLS or logins",
    "kafka_server_socket_server_metrics_failed_authentication_total": "with TLS or logins",
    "kafka_server_socket_server_metrics_successful_reauthentication_total": "with logins",
    "kafka_server_socket_server_metrics_failed_reauthentication_total": "with logins",
    "kafka_server_socket_server_metrics_expired_connections_killed_count": "with logins",
}
"""What a page of a cluster without these does not have."""


def is_left_out(name: str) -> bool:
    return any(name == one or (one.endswith("…") and name.startswith(one[:-1])) for one in LEFT_OUT)
