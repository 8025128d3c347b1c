"""What each status counter counts, in one line; a name that ends in * stands for a family of counters."""

from collections.abc import Iterable

from norm_core.records.status import Counter

MEANINGS: dict[str, str] = {
    # every node
    "messages_lost": "messages that the middleware lost before the node took them",
    "messages_refused": "messages that were not used, because a field or the type is invalid",
    "texts_cut": "texts, or lists of them, that were longer than any real one and were cut when they came",
    "process_id": "number of the process that hosts the node",
    "process_memory_kb": "memory of that process; of pages that processes share, its part",
    "process_cpu_ms": "CPU time of that process since it began",
    "duplicate_node_heartbeats": "heartbeats of another node of the same name",
    "server_requests_refused": "requests that failed at once, because the model's server could not be reached",
    # camera and ears
    "provider_fallbacks": "times that what was to run a model (tensorrt, cuda) failed, and the next one took its place",
    # a model in the node's process
    "picture_cache_hits": "pictures whose embedding was kept from an earlier window or question",
    "picture_cache_misses": "pictures that the vision tower encoded",
    "picture_cache_evictions": "embeddings dropped for room; raise picture_cache_mb if they grow as fast as misses",
    "engine_crashes": "times that the process of llama.cpp ended by itself and was started again",
    "model_out_of_memory": "times that memory ran out while a model worked",
    "pictures_withheld": "pictures left out of prompts after memory ran out",
    # camera
    "images_received": "camera images that arrived",
    "frames_kept": "camera images that were kept as frames",
    "frames_without_faces": "kept frames in which no faces were looked for, because the face models failed",
    "stamp_gaps": "pauses in the camera's stamps, long for its rate",
    "duplicate_stamps": "images with the stamp of the image before",
    "reordered_stamps": "images with an earlier stamp than the image before",
    "stamps_jumped_back": "jumps of the camera's stamps into the past, by more than a minute",
    "stamps_jumped_forward": "jumps of the camera's stamps into the future, by more than a minute",
    "decode_failures": "images that could not be decoded",
    "zero_size_images": "images without pixels",
    "unknown_encodings": "images in an encoding that is not supported",
    "source_changes": "changes of frame_id, size or encoding on the camera's topic",
    "two_publishers": "times that a second publisher appeared on the camera's topic",
    "raw_best_effort": "times that best-effort raw images began to leave periods of keep_hz without a frame",
    "stale_input": "times that the camera's images stopped",
    # microphone and speech
    "audio_unstamped": "audio messages without a stamp; their arrival time is used",
    "audio_rate_changes": "changes of the sample rate",
    "audio_timing_changes": "changes between stamped and unstamped audio",
    "audio_stamp_jumps_back": "jumps of audio stamps into the past",
    "audio_stamp_jumps_ahead": "gaps in the audio that are too long to be filled",
    "audio_duplicated_or_late": "audio messages that overlap the audio before them; the overlap is cut",
    "audio_gaps": "short gaps in the audio, filled with silence",
    "audio_not_finite": "audio messages with a sample that is not a finite number",
    "audio_clipped": "audio messages that are clipped; lower the microphone's gain",
    "audio_type_unknown": "messages that have no field of an audio message",
    "audio_without_info": "audio messages that came before their format was known",
    "audio_format_unknown": "audio messages in a sample format that is not supported",
    "audio_compressed": "audio messages that are compressed, which is not supported",
    "audio_empty": "audio messages without a sample",
    "audio_rate_refused": "audio messages whose sample rate is out of range",
    "audio_channels_refused": "audio messages whose number of channels is out of range",
    "audio_channel_missing": "audio messages that lack the configured channel",
    "robot_speech_late": "messages of robot speech that came after the audio they describe",
    "messages_not_robot_speech": "messages on a robot speech topic that do not describe speech",
    "words_late": "texts of the robot's recognizer that came later than words_lateness_ms after the speech; raise it",
    "robot_texts_repeated": "texts of the robot that came again while it said them, as on a second topic",
    "robot_texts_without_voice": "texts of the robot that its voice did not follow; their times are estimated",
    "robot_voices_lost": "times that the topic of the robot's voice vanished or fell silent while it spoke; its "
    "stop is estimated",
    "robot_voices_endless": "times that the robot was said to speak without an end; the stop is estimated",
    "segments_not_transcribed": "speech segments whose transcription failed",
    "segments_transcribed_early": "speech segments whose transcript was ready before the pause after them had ended",
    "partials_skipped": "partial transcripts that were skipped because a speech segment waited",
    "hallucinations_*": "transcripts that were discarded as hallucinations, by their sign: empty, no_speech, loop, "
    "in_silence",
    "utterances_final": "final utterances that were published",
    "utterances_partial": "partial utterances that were published",
    # what stands in for a robot
    "encounters_played": "encounters that were played to their end",
    "pictures_published": "pictures of this machine's camera that were published",
    "chunks_published": "pieces of sound of this machine's microphone that were published",
    "lines_published": "typed lines that were published as the robot's words",
    # people
    "presences": "presence records that were published",
    "persons_over_limit": "persons in a list beyond most_persons; they are ignored",
    "persons_evicted": "persons whose oldest data was dropped to bound memory",
    "persons_timed_out": "listed persons of whom nothing was heard for too long; they count as gone",
    "persons_with_invalid_ids": "person ids that cannot be part of a topic name",
    "engagement_levels_unknown": "engagement levels that REP-155 does not define",
    "messages_unstamped": "messages about persons without a stamp; their arrival time is used",
    "messages_late": "messages about persons that came after their moment was published",
    "stamps_jumped": "jumps of the stamps of messages about persons",
    "transforms_wrong_time": "transforms whose stamp is far from all others",
    "transforms_unusable": "transforms that are invalid, as with a value that is not finite",
    # monitor
    "windows": "windows that closed in time",
    "windows_late": "windows that closed before every source was complete, or after records were dropped; start the "
    "source that the status names, or raise windows.lateness_s",
    "units_not_judged": "units that were due for the judge and were dropped because others waited",
    "units_beyond_judge_budget": "units that judge.calls_per_hour left out",
    "judgements_after_close": "answers of the judge that came after their unit's flag was closed",
    "judge_units_refused": "units that found the judge's queue full; they are judged by the cues alone",
    "event_windows_refused": "requests for a window that could not be met: too old, or too many at once",
    "entries_left_out": "records that came too late for any window",
    "entries_late": "records that came after a window they belong to had closed",
    "entries_evicted": "records that were dropped to bound memory",
    "timeline_restarts": "jumps of the stamps into the past, after which the monitor starts anew",
    "queries_refused": "queries that were refused because too many waited",
    "records_failed": "records that raised an error in the monitor; please report it",
    "events_opened": "events that were flagged",
    "events_withdrawn": "flags that were withdrawn, because the evidence no longer sufficed",
    "events_over_rate_limit": "units that were not flagged, because their attribute had too many flags lately",
    "findings_without_timing": "findings of timing that were not used, because clocks lay apart",
    "findings_after_close": "findings that came after their unit's flag was closed",
    "facts_*": "statements of people about themselves that were forgotten, by reason: expired, of_departed, over_limit",
    "facts_forgotten_on_request": "statements of people about themselves that the service forget removed",
    "flags_*": "flag messages that were published, by polarity: error, competence",
    "judge_*": "requests to the judge, by outcome: answered, abstained, unparsed, timed_out, refused, invalid, failed",
    "judge_load_failures": "times that the judge's model could not be loaded",
    "prompts_not_written": "prompts that could not be written to judge.prompts_folder",
    "queries_*": "queries of a benchmark that were answered, by outcome",
    "study_log_late": "flags that were published before the study log had them on disk",
    "study_log_lost": "records that the study log lacks: not written before the node ended, or written and removed",
    "study_log_refused": "records that the study log could not take",
    # selector
    "decisions_*": "decisions, by outcome: answered, abstained, unparsed, timed_out, refused, invalid, failed",
    "decisions_without_pictures": "decisions made without the images, because the model runs on another machine",
    "goals_refused_inactive": "goals that were refused because the node was not active",
    "queries_dropped": "queries that still waited when the node ended",
    "repairs_refused": "error flags for which no repair was asked, as others still waited",
    # bags
    "messages_played": "messages that the player published",
    "messages_of_missing_types": "messages that were not played because their type is not installed",
    "messages_recorded": "messages that the recorder wrote",
    "messages_not_written": "messages that the recorder could not write",
}


# What a replay of the bag of a live run has otherwise, because it waits for every record and loses none.
_OUTSIDE_PARITY = {
    "messages_lost": "messages lost",
    "windows_late": "windows closed late",
    "entries_left_out": "records too late for any window",
    "robot_speech_late": "late messages of robot speech",
    "segments_not_transcribed": "speech segments not transcribed",
    "judge_timed_out": "answers of the judge timed out",
    "judge_units_refused": "units refused by the judge",
    "judgements_after_close": "answers of the judge after the close",
    "findings_without_timing": "findings held back as clocks lie apart",
}


def parity_note(counters: Iterable[Counter], dropped: int) -> str:
    """Say why a replay of the same input may decide otherwise; empty where nothing was late, lost or dropped."""
    counts = {counter.name: counter.count for counter in counters}
    reasons = [f"{counts[name]} {reason}" for name, reason in _OUTSIDE_PARITY.items() if counts.get(name)]
    reasons += [f"{dropped} records dropped from a full queue"] if dropped else []
    return f"outside parity: a replay of this run may flag otherwise, after {', '.join(reasons)}" if reasons else ""


def meaning_of(name: str) -> str:
    """Give what a counter counts, by its own line or its family's; empty where it has neither."""
    if name in MEANINGS:
        return MEANINGS[name]
    families = [family for family in MEANINGS if family.endswith("*") and name.startswith(family[:-1])]
    return MEANINGS[max(families, key=len)] if families else ""


def describe(counters: Iterable[Counter]) -> list[str]:
    """Give counters above zero as lines for a person: the name, the count and what it counts."""
    return [f"{counter.name}: {counter.count} ({meaning_of(counter.name)})" for counter in counters if counter.count]
