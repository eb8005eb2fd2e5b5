holdfast_test(events_test SOURCES events/event_pace_test.cc events/events_test.cc LIBRARIES holdfast_events)
