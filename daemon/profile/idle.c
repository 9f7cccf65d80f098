/*
 * See idle.h. From the leaf towards the root: frames of the JDK that wait (the plumbing) are passed
 * by, until one that is in the table, which waits for work only, or one of anybody else, who waits
 * for a reason of his own. So a task that waits inside of its worker is never idle, though the
 * worker's loop is further down.
 */
#include "daemon/profile/idle.h"

#include <string.h>
#include "daemon/core/mem.h"

#define FRAMES_MAX 48 /* the plumbing of no wait is deeper */

#define MARK_NO	 1
#define MARK_YES 2

/* Where a class waits for work; NULL = in any of its methods. */
static const struct {
	const char *class_name, *method;
} marks[] = {
	/* the JDK's pools, timers, queues of references */
	{ "java.util.concurrent.ThreadPoolExecutor", "getTask" },
	{ "java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue", "take" },
	{ "java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue", "poll" },
	{ "java.util.concurrent.ForkJoinPool", "awaitWork" },
	{ "java.util.concurrent.ForkJoinPool", "deactivate" }, /* JDK 24 and later */
	{ "java.util.concurrent.DelayScheduler", "loop" }, /* JDK 25 */
	{ "java.util.TimerThread", "mainLoop" },
	{ "java.lang.ref.ReferenceQueue", "remove" },
	{ "java.lang.ref.ReferenceQueue", "remove0" },
	{ "java.lang.ref.NativeReferenceQueue", "remove" },
	{ "java.lang.ref.Reference", "waitForReferencePendingList" },
	{ "java.lang.ref.Reference", "tryHandlePending" },
	{ "java.lang.ref.Reference$ReferenceHandler", "run" },
	{ "java.lang.VirtualThread$DelayedTaskSchedulers", NULL },
	{ "sun.misc.GC$Daemon", "run" },
	{ "sun.rmi.transport.GC$Daemon", "run" },
	{ "jdk.jfr.internal.PlatformRecorder", "takeNap" },
	{ "jdk.jfr.internal.PlatformRecorder", "periodicTask" },
	{ "sun.awt.AWTAutoShutdown", "run" },
	{ "java.awt.EventQueue", "getNextEvent" },
	/* selectors, and loops that accept */
	{ "sun.nio.ch.SelectorImpl", "select" },
	{ "sun.nio.ch.SelectorImpl", "lockAndDoSelect" },
	{ "sun.nio.ch.EPollSelectorImpl", "doSelect" },
	{ "sun.nio.ch.EPollPoller", "poll" },
	{ "sun.nio.ch.Poller", "pollLoop" },
	{ "sun.nio.ch.Poller", "pollerLoop" },
	{ "sun.nio.ch.Poller", "subPollerLoop" },
	{ "sun.nio.ch.EPollPort$EventHandlerTask", "poll" },
	{ "sun.nio.ch.ServerSocketChannelImpl", "accept" },
	{ "sun.nio.ch.NioSocketImpl", "accept" },
	{ "java.net.PlainSocketImpl", "socketAccept" },
	{ "java.net.AbstractPlainSocketImpl", "accept" },
	{ "java.net.ServerSocket", "implAccept" },
	/* Netty */
	{ "io.netty.util.concurrent.SingleThreadEventExecutor", "takeTask" },
	{ "io.netty.util.concurrent.GlobalEventExecutor", "takeTask" },
	{ "io.netty.util.HashedWheelTimer$Worker", "waitForNextTick" },
	{ "io.netty.channel.epoll.EpollEventLoop", "epollWait" },
	{ "io.netty.channel.epoll.Native", "epollWait" },
	{ "io.netty.channel.epoll.Native", "epollWait0" },
	{ "io.netty.channel.uring.IoUringEventLoop", "run" },
	{ "io.netty.util.ThreadDeathWatcher$Watcher", "run" },
	/* Tomcat, Jetty, JBoss and Undertow */
	{ "org.apache.tomcat.util.threads.TaskQueue", "take" },
	{ "org.apache.tomcat.util.threads.TaskQueue", "poll" },
	{ "org.apache.tomcat.util.threads.ThreadPoolExecutor", "getTask" },
	{ "org.apache.tomcat.util.net.NioBlockingSelector$BlockPoller", "run" },
	{ "org.apache.catalina.core.StandardServer", "await" },
	{ "org.apache.catalina.core.ContainerBase$ContainerBackgroundProcessor", "run" },
	{ "org.eclipse.jetty.util.BlockingArrayQueue", "take" },
	{ "org.eclipse.jetty.util.BlockingArrayQueue", "poll" },
	{ "org.eclipse.jetty.util.thread.QueuedThreadPool", "idleJobPoll" },
	{ "org.eclipse.jetty.util.thread.QueuedThreadPool$Runner", "idleJobPoll" },
	{ "org.eclipse.jetty.util.thread.QueuedThreadPool", "join" },
	{ "org.eclipse.jetty.util.thread.ReservedThreadExecutor$ReservedThread", "reservedWait" },
	{ "org.jboss.threads.EnhancedQueueExecutor$PoolThreadNode", "park" },
	{ "org.jboss.threads.EnhancedQueueExecutor$PoolThreadNode", "waitForTask" },
	{ "org.jboss.threads.EnhancedQueueExecutor$ThreadBody", "run" },
	{ "org.jboss.threads.EnhancedQueueExecutor$SchedulerThread", "run" },
	/* loops of brokers, clients, pools, loggers, schedulers */
	{ "kafka.network.RequestChannel", "receiveRequest" },
	{ "kafka.utils.timer.SystemTimer", "advanceClock" },
	{ "org.apache.kafka.server.util.timer.SystemTimer", "advanceClock" },
	{ "org.apache.kafka.queue.KafkaEventQueue$EventHandler", "handleEvents" },
	{ "org.apache.zookeeper.ClientCnxn$EventThread", "run" },
	{ "org.apache.cassandra.concurrent.SEPWorker", "doWaitSpin" },
	{ "org.apache.cassandra.concurrent.SEPWorker", "run" },
	{ "org.apache.activemq.thread.PooledTaskRunner", "run" },
	{ "org.apache.http.impl.conn.IdleConnectionEvictor$1", "run" },
	{ "com.mysql.cj.jdbc.AbandonedConnectionCleanupThread", "run" },
	{ "com.mchange.v2.async.ThreadPoolAsynchronousRunner$PoolThread", "run" },
	{ "com.lmax.disruptor.BlockingWaitStrategy", "waitFor" },
	{ "com.lmax.disruptor.LiteBlockingWaitStrategy", "waitFor" },
	{ "com.lmax.disruptor.TimeoutBlockingWaitStrategy", "waitFor" },
	{ "com.lmax.disruptor.SleepingWaitStrategy", "waitFor" },
	{ "com.lmax.disruptor.YieldingWaitStrategy", "waitFor" },
	{ "org.apache.logging.log4j.core.async.AsyncAppenderEventDispatcher", "run" },
	{ "org.apache.logging.log4j.core.async.AsyncAppenderEventDispatcher", "dispatchAll" },
	{ "ch.qos.logback.core.AsyncAppenderBase$Worker", "run" },
	{ "org.quartz.simpl.SimpleThreadPool$WorkerThread", "run" },
	{ "org.quartz.core.QuartzSchedulerThread", "run" },
	{ "kotlinx.coroutines.scheduling.CoroutineScheduler$Worker", "park" },
	{ "kotlinx.coroutines.scheduling.CoroutineScheduler$Worker", "tryPark" },
	{ "kotlinx.coroutines.DefaultExecutor", "run" },
	{ "okhttp3.internal.concurrent.TaskRunner", "awaitTaskToRun" },
	{ "okhttp3.internal.concurrent.TaskRunner$RealBackend", "coordinatorWait" },
	{ "okio.AsyncTimeout", "awaitTimeout" },
	{ "okio.AsyncTimeout$Companion", "awaitTimeout" },
	{ "akka.actor.LightArrayRevolverScheduler", "waitNanos" },
	{ "org.apache.pekko.actor.LightArrayRevolverScheduler", "waitNanos" },
};

/* Threads of the JVM that wait to be asked for something. */
static const char *const services[] = {
	"Signal Dispatcher", "Attach Listener",		 "Notification Thread",
	"Service Thread",    "Monitor Deflation Thread",
};

/* Who waits in the name of his caller. */
static const char *const plumbing[] = {
	"java.util.concurrent.",
	"java.lang.Object",
	"java.lang.Thread",
	"java.lang.VirtualThread",
	"java.lang.ref.",
	"jdk.internal.",
	"sun.misc.Unsafe",
	"sun.nio.ch.",
	"java.net.",
	"java.util.TimerThread",
	"io.netty.channel.epoll.",
};

/* A lock that is contended, be it the queue's own: not for want of work. */
static const char *const contended[] = {
	"java.util.concurrent.locks.ReentrantLock",
	"java.util.concurrent.locks.ReentrantReadWriteLock",
	"java.util.concurrent.locks.StampedLock",
	"java.util.concurrent.Semaphore",
};

static bool begins_with_one(const char *s, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(s, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

enum idle_sight idle_frame(const char *class_name, const char *method)
{
	if (begins_with_one(class_name, contended, ARRAY_SIZE(contended)))
		return IDLE_NO;
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (strcmp(class_name, marks[i].class_name) == 0 &&
		    (!marks[i].method || strcmp(method, marks[i].method) == 0))
			return IDLE_YES;
	return begins_with_one(class_name, plumbing, ARRAY_SIZE(plumbing)) ? IDLE_UNDECIDED
									   : IDLE_NO;
}

static enum idle_sight look(const struct stream *stream, uint32_t node)
{
	enum idle_sight sight = IDLE_UNDECIDED;
	struct stream_frame f;

	for (int i = 0; i < FRAMES_MAX && sight == IDLE_UNDECIDED; i++) {
		if (!stream_node(stream, node, &f, &node))
			return IDLE_NO;
		if (wire_kind_is_method(f.kind))
			sight = idle_frame(f.class_name, f.method);
	}
	return sight;
}

bool idle_stack(const struct stream *stream, uint32_t node)
{
	uint8_t mark = stream_node_mark(stream, node);

	if (mark == 0) {
		mark = look(stream, node) == IDLE_YES ? MARK_YES : MARK_NO;
		stream_mark_node(stream, node, mark);
	}
	return mark == MARK_YES;
}

bool idle_wait(const struct stream *stream, const struct stream_lock *wait)
{
	return wait->wait != WIRE_WAIT_ENTER && idle_stack(stream, wait->node);
}

static bool has_method(const struct stream *stream, uint32_t node)
{
	struct stream_frame f;

	for (int i = 0; i < FRAMES_MAX && stream_node(stream, node, &f, &node); i++)
		if (wire_kind_is_method(f.kind))
			return true;
	return false;
}

bool idle_sample(const struct stream *stream, const struct stream_sample *sample)
{
	for (size_t i = 0; i < ARRAY_SIZE(services); i++)
		if (strcmp(sample->thread, services[i]) == 0)
			return !has_method(stream, sample->node);
	return idle_stack(stream, sample->node);
}
