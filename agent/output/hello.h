/* HELLO: identifies the agent and its JVM. Agent's thread, attached. */
#pragma once

#include "agent/output/writer.h"

enum writer_result hello_send(const struct wire_start *start);
