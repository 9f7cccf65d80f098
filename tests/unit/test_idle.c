#include "tests/unit/stacks.h"
#include "daemon/profile/idle.h"

/* Frames from the root, NULL last. */
static bool is_idle(const char *const *frames)
{
	uint32_t node;
	struct stream *s = stacks_stream(frames, &node);
	bool idle = idle_stack(s, node);

	assert_int_equal(idle_stack(s, node), idle); /* as remembered */
	stream_free(s);
	return idle;
}
#define IDLE(...) is_idle((const char *const[]){ __VA_ARGS__, NULL })

#define WORKER                                                                        \
	"java/lang/Thread.run", "java/util/concurrent/ThreadPoolExecutor$Worker.run", \
		"java/util/concurrent/ThreadPoolExecutor.runWorker"
#define PARK  "java/util/concurrent/locks/LockSupport.park", "jdk/internal/misc/Unsafe.park"
#define AWAIT "java/util/concurrent/locks/AbstractQueuedSynchronizer$ConditionObject.await", PARK

#define READ                                                                                   \
	"java/io/BufferedInputStream.read", "java/io/BufferedInputStream.fill",                \
		"java/net/Socket$SocketInputStream.read", "sun/nio/ch/NioSocketImpl.implRead", \
		"sun/nio/ch/Net.poll"

static void a_worker_at_an_empty_queue_is_idle(void **state)
{
	(void)state;
	assert_true(IDLE(WORKER, "java/util/concurrent/ThreadPoolExecutor.getTask",
			 "java/util/concurrent/LinkedBlockingQueue.take", AWAIT));
	assert_true(IDLE("java/util/concurrent/ForkJoinWorkerThread.run",
			 "java/util/concurrent/ForkJoinPool.runWorker",
			 "java/util/concurrent/ForkJoinPool.awaitWork", PARK));
	assert_true(IDLE("java/util/TimerThread.run", "java/util/TimerThread.mainLoop",
			 "java/lang/Object.wait", "java/lang/Object.wait0"));
}

static void a_virtual_thread_can_be_idle(void **state)
{
	(void)state;
	assert_true(IDLE(WORKER, "java/util/concurrent/ThreadPoolExecutor.getTask",
			 "java/util/concurrent/LinkedBlockingQueue.take",
			 "java/util/concurrent/locks/LockSupport.park",
			 "java/lang/System$1.parkVirtualThread", "java/lang/VirtualThread.park",
			 "java/lang/VirtualThread.yieldContinuation"));
}

static void a_queue_waits_for_whoever_asks_it(void **state)
{
	(void)state;
	/* Elasticsearch's, Artemis', and that of Hadoop's servers */
	assert_true(IDLE(WORKER, "java/util/concurrent/ThreadPoolExecutor.getTask",
			 "org/elasticsearch/common/util/concurrent/SizeBlockingQueue.take",
			 "java/util/concurrent/LinkedTransferQueue.take", PARK));
	assert_true(IDLE(WORKER, "java/util/concurrent/ThreadPoolExecutor.getTask",
			 "org/shop/Pool$TaskQueue.poll", "org/shop/Pool$TaskQueue.poll",
			 "java/util/concurrent/LinkedBlockingQueue.poll", AWAIT));
	assert_true(IDLE("org/apache/hadoop/ipc/Server$Handler.run",
			 "org/apache/hadoop/ipc/CallQueueManager.take",
			 "java/util/concurrent/LinkedBlockingQueue.poll", AWAIT));
	assert_false(IDLE(WORKER, "org/shop/Order.call", "org/shop/AnswerQueue.take",
			  "java/util/concurrent/LinkedBlockingQueue.take", AWAIT));
	/* it has to be a queue, and to be asked for something */
	assert_int_equal(idle_frame("org/shop/queue/Cart", "take"), IDLE_NO);
	assert_int_equal(idle_frame("org.shop.Queue.Cart", "take"), IDLE_NO);
	assert_int_equal(idle_frame("org.shop.TaskQueue", "flush"), IDLE_NO);
	assert_int_equal(idle_frame("org.shop.TaskQueue", "take"), IDLE_UNDECIDED);
	/* Jetty 12: what a request waits for by the same means is no work to come */
	assert_true(IDLE("org/eclipse/jetty/util/thread/QueuedThreadPool$Runner.idleJobPoll",
			 "org/eclipse/jetty/util/BlockingArrayQueue.poll",
			 "org/eclipse/jetty/util/thread/AutoLock$WithCondition.awaitNanos", AWAIT));
	assert_false(IDLE("org/eclipse/jetty/server/HttpInput.read",
			  "org/eclipse/jetty/util/thread/AutoLock$WithCondition.await", AWAIT));
	/* a queue that only workers ask */
	assert_int_equal(idle_frame("org.apache.tomcat.util.threads.TaskQueue", "take"), IDLE_YES);
}

static void a_helper_that_waits_does_so_for_its_caller(void **state)
{
#define IGNITE_SLEEP "org/apache/ignite/internal/util/IgniteUtils.sleep", "java/lang/Thread.sleep"
#define ROCKET_AWAIT "org/apache/rocketmq/common/CountDownLatch2.await", PARK
#define DISRUPTOR_AWAIT "com/lmax/disruptor/util/Util.awaitNanos", "java/lang/Object.wait"
#define GRPC_CALL                                     \
	"io/grpc/stub/ClientCalls.blockingUnaryCall", \
		"io/grpc/stub/ClientCalls$ThreadlessExecutor.waitAndDrain", PARK
#define TEMPORAL_STUB                         \
	"io/temporal/api/workflowservice/v1/" \
	"WorkflowServiceGrpc$WorkflowServiceBlockingStub.pollWorkflowTaskQueue"
	(void)state;
	assert_true(IDLE("org/apache/ignite/internal/processors/cache/"
			 "GridCacheSharedTtlCleanupManager$CleanupWorker.body",
			 IGNITE_SLEEP));
	assert_false(IDLE(WORKER, "org/shop/Order.call", IGNITE_SLEEP));
	assert_true(IDLE("org/apache/rocketmq/store/StoreStatsService.run",
			 "org/apache/rocketmq/common/ServiceThread.waitForRunning", ROCKET_AWAIT));
	assert_false(IDLE(WORKER, "org/shop/Order.call", ROCKET_AWAIT));
	assert_true(IDLE("com/lmax/disruptor/BatchEventProcessor.run",
			 "com/lmax/disruptor/TimeoutBlockingWaitStrategy.waitFor",
			 DISRUPTOR_AWAIT));
	assert_false(IDLE("org/shop/Main.run", DISRUPTOR_AWAIT));
	/* Temporal's workers ask for work by gRPC, as others ask for answers */
	assert_true(IDLE("io/temporal/internal/worker/WorkflowPollTask.doPoll", TEMPORAL_STUB,
			 GRPC_CALL));
	assert_false(IDLE("io/temporal/internal/client/external/GenericWorkflowClientImpl.start",
			  TEMPORAL_STUB, GRPC_CALL));
	assert_false(IDLE(WORKER, "org/shop/ShopGrpc$ShopBlockingStub.buy", GRPC_CALL));
}

static void a_client_that_has_lost_its_server_is_not_idle(void **state)
{
	(void)state;
	assert_true(IDLE("com/alibaba/nacos/common/remote/client/RpcClient.lambda$start$0",
			 "java/util/concurrent/LinkedBlockingQueue.take", AWAIT));
	assert_false(IDLE("com/alibaba/nacos/common/remote/client/RpcClient.lambda$start$1",
			  "com/alibaba/nacos/common/remote/client/RpcClient.reconnect",
			  "java/lang/Thread.sleep"));
	/* nor one that waits for an answer */
	assert_false(IDLE("org/apache/hadoop/hbase/regionserver/HRegionServer.run",
			  "org/apache/hadoop/hbase/ipc/BlockingRpcCallback.get",
			  "java/lang/Object.wait"));
}

static void a_listener_of_messages_is_idle_and_who_waits_for_a_reply_is_not(void **state)
{
#define RECEIVE                                                                            \
	"org/apache/activemq/artemis/jms/client/ActiveMQMessageConsumer.receive",          \
		"org/apache/activemq/artemis/core/client/impl/ClientConsumerImpl.receive", \
		"java/lang/Object.wait"
#define FROM_CONSUMER \
	"org/springframework/jms/support/destination/JmsDestinationAccessor.receiveFromConsumer"
	(void)state;
	assert_true(IDLE(WORKER,
			 "org/springframework/jms/listener/"
			 "AbstractPollingMessageListenerContainer.receiveMessage",
			 FROM_CONSUMER, RECEIVE));
	assert_false(
		IDLE("org/springframework/jms/core/JmsTemplate.doReceive", FROM_CONSUMER, RECEIVE));
	assert_false(IDLE("org/shop/Main.run", RECEIVE));
	assert_true(IDLE("java/lang/Thread.run",
			 "org/eclipse/paho/client/mqttv3/internal/CommsReceiver.run",
			 "org/eclipse/paho/client/mqttv3/internal/wire/"
			 "MqttInputStream.readMqttWireMessage",
			 "java/io/DataInputStream.readByte", READ));
	assert_false(IDLE("org/shop/Main.run",
			  "org/eclipse/paho/client/mqttv3/internal/Token.waitForResponse",
			  "java/lang/Object.wait"));
}

static void a_task_that_waits_inside_of_its_worker_is_not(void **state)
{
	(void)state;
	assert_false(IDLE(WORKER, "org/shop/Order.call",
			  "java/util/concurrent/LinkedBlockingQueue.take", AWAIT));
	assert_false(IDLE("java/util/TimerThread.run", "java/util/TimerThread.mainLoop",
			  "org/shop/Tick.run", "java/lang/Object.wait"));
	assert_false(IDLE("java/lang/Thread.run", "org/shop/Main.run", PARK));
}

static void workers_that_fight_for_the_lock_of_their_queue_are_not(void **state)
{
	(void)state;
	assert_false(IDLE(WORKER, "java/util/concurrent/ThreadPoolExecutor.getTask",
			  "java/util/concurrent/LinkedBlockingQueue.take",
			  "java/util/concurrent/locks/ReentrantLock.lockInterruptibly",
			  "java/util/concurrent/locks/AbstractQueuedSynchronizer.acquire", PARK));
}

/* A semaphore's permits may be tasks, or what a pool has left: who asks for one knows. */
static void a_semaphore_waits_for_whoever_asks_it(void **state)
{
#define ACQUIRE "java/util/concurrent/Semaphore.tryAcquire", PARK
	(void)state;
	assert_true(IDLE("java/lang/Thread.run",
			 "org/eclipse/jetty/util/thread/ReservedThreadExecutor$ReservedThread.run",
			 "org/eclipse/jetty/util/thread/"
			 "ReservedThreadExecutor$ReservedThread.waitForTask",
			 ACQUIRE));
	assert_false(IDLE(WORKER, "org/shop/Pool.borrow", ACQUIRE));
	assert_false(IDLE(WORKER, ACQUIRE));
}

static void a_connection_without_a_request_is_idle(void **state)
{
	(void)state;
	assert_true(IDLE("sun/rmi/transport/tcp/TCPTransport$ConnectionHandler.run0",
			 "sun/rmi/transport/tcp/TCPTransport.handleMessages", READ));
	assert_true(IDLE("org/h2/server/TcpServerThread.run",
			 "org/h2/server/TcpServerThread.process", "org/h2/value/Transfer.readInt",
			 "java/io/DataInputStream.readInt", READ));
	assert_true(IDLE("io/helidon/webserver/http1/Http1Connection.handle",
			 "io/helidon/webserver/http1/Http1Prologue.readPrologue",
			 "io/helidon/common/buffers/DataReader.ensureAvailable",
			 "io/helidon/webserver/ConnectionHandler$MapExceptionDataSupplier.get",
			 "io/helidon/common/socket/PlainSocket.get", READ));
	assert_true(IDLE("org/apache/thrift/TBaseProcessor.process",
			 "org/apache/thrift/protocol/TBinaryProtocol.readMessageBegin",
			 "org/apache/thrift/transport/TIOStreamTransport.read", READ));
	assert_true(IDLE("okhttp3/internal/http2/Http2Connection$ReaderRunnable.invoke",
			 "okhttp3/internal/http2/Http2Reader.nextFrame",
			 "okio/RealBufferedSource.require", READ));
}

static void a_database_s_connection_without_a_request_is_idle(void **state)
{
	(void)state;
	assert_true(IDLE("org/apache/derby/impl/drda/DRDAConnThread.processCommands",
			 "org/apache/derby/impl/drda/DDMReader.readDssHeader",
			 "org/apache/derby/impl/drda/DDMReader.fill", READ));
	assert_true(IDLE("java/lang/Thread.run", "org/hsqldb/server/ServerConnection.run",
			 "java/io/DataInputStream.readByte", READ));
	assert_true(IDLE("com/unboundid/ldap/listener/LDAPListenerClientConnection.run",
			 "com/unboundid/ldap/protocol/LDAPMessage.readFrom",
			 "com/unboundid/asn1/ASN1StreamReader.read", READ));
	/* the text of a statement */
	assert_false(IDLE("org/apache/derby/impl/drda/DRDAConnThread.processCommands",
			  "org/apache/derby/impl/drda/DRDAConnThread.parsePRPSQLSTT",
			  "org/apache/derby/impl/drda/DDMReader.fill", READ));
	assert_false(IDLE("org/hsqldb/server/ServerConnection.run",
			  "org/hsqldb/server/ServerConnection.receiveResult",
			  "java/io/DataInputStream.readInt", READ));
}

static void a_reader_for_others_and_a_subscriber_are_idle(void **state)
{
	(void)state;
	assert_true(IDLE("java/lang/Thread.run", "com/sun/jndi/ldap/Connection.run", READ));
	assert_true(IDLE("com/unboundid/ldap/sdk/LDAPConnectionReader.run",
			 "com/unboundid/ldap/protocol/LDAPMessage.readLDAPResponseFrom",
			 "com/unboundid/asn1/ASN1StreamReader.read", READ));
	assert_true(IDLE("com/rabbitmq/client/impl/AMQConnection$MainLoop.run",
			 "com/rabbitmq/client/impl/SocketFrameHandler.readFrame",
			 "com/rabbitmq/client/impl/Frame.readFrom",
			 "java/io/DataInputStream.readUnsignedByte", READ));
	assert_true(IDLE("org/shop/Main.run", "redis/clients/jedis/Jedis.subscribe",
			 "redis/clients/jedis/JedisPubSubBase.process",
			 "redis/clients/jedis/Connection.getUnflushedObject",
			 "redis/clients/jedis/Protocol.read",
			 "redis/clients/jedis/util/RedisInputStream.ensureFill", READ));
}

static void a_loop_beside_the_requests_is_idle(void **state)
{
	(void)state;
	assert_true(IDLE("java/lang/Thread.run",
			 "org/apache/camel/component/seda/SedaConsumer.doRun",
			 "java/util/concurrent/LinkedBlockingQueue.poll", AWAIT));
	assert_true(IDLE(
		"java/lang/Thread.run", "org/apache/derby/impl/services/daemon/BasicDaemon.run",
		"org/apache/derby/impl/services/daemon/BasicDaemon.rest", "java/lang/Object.wait"));
	assert_true(IDLE("java/lang/Thread.run", "sun/net/www/http/KeepAliveCache.run",
			 "java/lang/Thread.sleep"));
	assert_true(IDLE("java/lang/Thread.run", "sun/nio/fs/LinuxWatchService$Poller.run",
			 "sun/nio/fs/LinuxWatchService.poll"));
	assert_true(IDLE("org/neo4j/io/pagecache/impl/muninn/MuninnPageCache.parkEvictor", PARK));
	assert_true(IDLE("org/apache/kafka/server/util/ShutdownableThread.run",
			 "org/apache/kafka/raft/KafkaRaftClientDriver.doWork",
			 "org/apache/kafka/raft/KafkaRaftClient.poll",
			 "org/apache/kafka/raft/internals/BlockingMessageQueue.poll",
			 "java/util/concurrent/LinkedBlockingQueue.poll", AWAIT));
	assert_true(IDLE("org/agrona/concurrent/AgentRunner.doWork",
			 "org/agrona/concurrent/BackoffIdleStrategy.idle", PARK));
	/* what they do when there is something to do */
	assert_false(
		IDLE("java/lang/Thread.run", "org/apache/camel/component/seda/SedaConsumer.doRun",
		     "org/shop/Route.process", "java/util/concurrent/CountDownLatch.await", PARK));
	assert_false(IDLE("org/apache/derby/impl/services/daemon/BasicDaemon.run",
			  "org/apache/derby/impl/store/raw/RawStore.checkpoint",
			  "java/lang/Object.wait"));
	assert_false(IDLE("org/apache/kafka/clients/consumer/internals/"
			  "AbstractCoordinator$HeartbeatThread.run",
			  "org/apache/kafka/clients/consumer/internals/ConsumerNetworkClient.poll",
			  "java/util/concurrent/locks/ReentrantLock.lock", PARK));
}

static void a_read_of_an_answer_is_not(void **state)
{
	(void)state;
	assert_false(IDLE("org/shop/Main.run", "redis/clients/jedis/Jedis.get",
			  "redis/clients/jedis/Connection.executeCommand",
			  "redis/clients/jedis/Protocol.read",
			  "redis/clients/jedis/util/RedisInputStream.ensureFill", READ));
	assert_false(IDLE("com/sun/jndi/ldap/LdapClient.search",
			  "com/sun/jndi/ldap/Connection.readReply",
			  "com/sun/jndi/ldap/LdapRequest.getReplyBer",
			  "java/util/concurrent/LinkedBlockingQueue.poll", PARK));
	assert_false(IDLE("com/unboundid/ldap/sdk/LDAPConnectionReader.readResponse",
			  "com/unboundid/ldap/protocol/LDAPMessage.readLDAPResponseFrom",
			  "com/unboundid/asn1/ASN1StreamReader.read", READ));
	assert_false(IDLE("org/h2/engine/SessionRemote.done", "org/h2/value/Transfer.readInt",
			  "java/io/DataInputStream.readInt", READ));
	assert_false(IDLE("org/apache/thrift/TServiceClient.receiveBase",
			  "org/apache/thrift/protocol/TBinaryProtocol.readMessageBegin",
			  "org/apache/thrift/transport/TIOStreamTransport.read", READ));
	/* the arguments of a call */
	assert_false(IDLE("org/apache/thrift/TBaseProcessor.process",
			  "org/apache/thrift/ProcessFunction.process",
			  "org/shop/Shop$buy_args.read",
			  "org/apache/thrift/protocol/TBinaryProtocol.readFieldBegin",
			  "org/apache/thrift/transport/TIOStreamTransport.read", READ));
	assert_false(IDLE("okhttp3/internal/http1/HeadersReader.readLine",
			  "okio/RealBufferedSource.readUtf8LineStrict", READ));
	assert_false(IDLE("org/shop/Main.run", "java/io/PipedInputStream.read",
			  "java/lang/Object.wait"));
	assert_false(IDLE("sun/rmi/transport/tcp/TCPTransport.handleMessages",
			  "org/shop/Remote.price", READ));
}

/* As the kernel keeps them: 15 bytes; JDK 28 leaves out the middle. */
static void the_jvms_own_threads_are_known_by_name(void **state)
{
	static const char *const names[] = {
		"VM Thread",	   "Gang worker#1 (", "ShenandoahContr", "StringDedupThre",
		"String Deduplic", "G1 Refi..kers#2", "G1 Refi..ontrol", "ShenControl",
		"ShenWorker#12",   "Reference Handl", "Referen..andler", "JFR Recorder Th",
	};
	static const char *const others[] = { "VM Threads", "ShenControl-1",   "Gang", "main",
					      "",	    "G1 Refi..ontrols" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(idle_vm_thread(names[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(idle_vm_thread(others[i]));
}

static void frames_without_a_method_do_not_decide(void **state)
{
	(void)state;
	assert_true(IDLE(WORKER, "java/util/concurrent/ThreadPoolExecutor.getTask", PARK,
			 "Unsafe_Park", "pthread_cond_wait"));
	assert_false(IDLE("start_thread", "pthread_cond_wait"));
}

static void a_thread_that_enters_a_monitor_is_never_idle(void **state)
{
	struct stream_ops ops = { 0 };
	struct stream_lock wait = { .wait = WIRE_WAIT_ENTER };
	struct stream *s;

	(void)state;
	assert_int_equal(stream_new(&ops, NULL, &s), 0);
	assert_false(idle_wait(s, &wait));
	wait.wait = WIRE_WAIT_PARK; /* without a stack nobody knows */
	assert_false(idle_wait(s, &wait));
	stream_free(s);
}

static void threads_of_the_jvm_that_wait_to_be_asked_are_idle(void **state)
{
	struct stream_sample sample = { .thread = "Signal Dispatcher" };
	struct stream_ops ops = { 0 };
	struct stream *s;

	(void)state;
	assert_int_equal(stream_new(&ops, NULL, &s), 0);
	assert_true(idle_sample(s, &sample));
	sample.thread = "http-1";
	assert_false(idle_sample(s, &sample));
	stream_free(s);
}

static void a_frame_alone_says_yes_no_or_go_on(void **state)
{
	(void)state;
	assert_int_equal(idle_frame("java.util.concurrent.ThreadPoolExecutor", "getTask"),
			 IDLE_YES);
	assert_int_equal(idle_frame("java.util.concurrent.ThreadPoolExecutor", "awaitTermination"),
			 IDLE_UNDECIDED);
	assert_int_equal(idle_frame("org.shop.Cart", "take"), IDLE_NO);
	assert_int_equal(idle_frame("sun.nio.ch.Poller", "poll"), IDLE_UNDECIDED); /* for I/O */
}

static void a_relocated_class_is_the_same(void **state)
{
	(void)state;
	assert_int_equal(
		idle_frame(
			"io/grpc/netty/shaded/io/netty/util/concurrent/SingleThreadEventExecutor",
			"takeTask"),
		IDLE_YES);
	assert_int_equal(
		idle_frame("io/netty/util/concurrent/SingleThreadEventExecutor", "takeTask"),
		IDLE_YES);
	assert_int_equal(
		idle_frame("studio.netty.util.concurrent.SingleThreadEventExecutor", "takeTask"),
		IDLE_NO);
	/* Netty's timer, Dubbo's, and any other one */
	assert_int_equal(idle_frame("io/netty/util/HashedWheelTimer$Worker", "waitForNextTick"),
			 IDLE_YES);
	assert_int_equal(idle_frame("org.apache.dubbo.common.timer.HashedWheelTimer$Worker",
				    "waitForNextTick"),
			 IDLE_YES);
	assert_int_equal(
		idle_frame("org.apache.skywalking.apm.commons.datacarrier.consumer.ConsumerThread",
			   "run"),
		IDLE_YES);
	assert_int_equal(idle_frame("org.shop.NoHashedWheelTimer$Worker", "waitForNextTick"),
			 IDLE_NO);
}

static void what_virtual_threads_have_their_carriers_do_is_idle(void **state)
{
	(void)state;
	assert_true(IDLE("jdk/internal/misc/InnocuousThread.run", "java/lang/Thread.run",
			 "sun/nio/ch/Poller$$Lambda.run", "sun/nio/ch/Poller.updateLoop",
			 "java/util/concurrent/LinkedTransferQueue.take",
			 "java/util/concurrent/LinkedTransferQueue.xfer", PARK));
	assert_true(IDLE("org/shop/Order.call", "java/lang/Thread.sleep",
			 "java/lang/VirtualThread.sleepNanos", "java/lang/VirtualThread.parkNanos",
			 "java/lang/VirtualThread.parkOnCarrierThread",
			 "jdk/internal/misc/Unsafe.park"));
	assert_false(IDLE("org/shop/Order.call", "java/util/concurrent/CountDownLatch.await",
			  "java/lang/VirtualThread.parkOnCarrierThread",
			  "jdk/internal/misc/Unsafe.park"));
}

static void methods_that_a_user_adds_are_idle(void **state)
{
	static const char names[] = "org.shop.Courier,org.shop.Clerk.next";
	char longest[2 * IDLE_ADDED_MAX];
	uint16_t version = idle_version();

	(void)state;
	memset(longest, 'x', sizeof(longest));
	assert_int_equal(idle_frame("org/shop/Clerk", "next"), IDLE_NO);
	idle_add(names, strlen(names));
	assert_int_not_equal(idle_version(), version);
	assert_int_equal(idle_frame("org/shop/Courier", "anything"), IDLE_YES);
	assert_int_equal(idle_frame("org.shop.Clerk", "next"), IDLE_YES);
	assert_int_equal(idle_frame("org.shop.Clerk", "nex"), IDLE_NO);
	assert_int_equal(idle_frame("org.shop.Clerk", "nextOne"), IDLE_NO);
	assert_int_equal(idle_frame("org.shop.Clerks", "next"), IDLE_NO);
	assert_int_equal(idle_frame("org.shop.Cler", "k.next"), IDLE_NO);
	assert_int_equal(idle_frame("shop.Clerk", "next"), IDLE_NO);
	assert_true(IDLE("org/shop/Clerk.next", "java/util/concurrent/LinkedBlockingQueue.take",
			 AWAIT));
	/* whoever fights for a lock does not wait for work */
	assert_false(
		IDLE("org/shop/Clerk.next", "java/util/concurrent/locks/ReentrantLock.lock", PARK));
	version = idle_version();
	idle_add(names, strlen(names));
	assert_int_equal(idle_version(), version);
	idle_add(longest, sizeof(longest)); /* is cut */
	assert_int_equal(idle_frame("org.shop.Clerk", "next"), IDLE_NO);
	idle_add(NULL, 0);
	assert_int_equal(idle_frame("org.shop.Courier", "next"), IDLE_NO);
	assert_int_equal(idle_frame("", ""), IDLE_NO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_at_an_empty_queue_is_idle),
		cmocka_unit_test(a_virtual_thread_can_be_idle),
		cmocka_unit_test(a_queue_waits_for_whoever_asks_it),
		cmocka_unit_test(a_helper_that_waits_does_so_for_its_caller),
		cmocka_unit_test(a_client_that_has_lost_its_server_is_not_idle),
		cmocka_unit_test(a_listener_of_messages_is_idle_and_who_waits_for_a_reply_is_not),
		cmocka_unit_test(a_task_that_waits_inside_of_its_worker_is_not),
		cmocka_unit_test(a_semaphore_waits_for_whoever_asks_it),
		cmocka_unit_test(a_connection_without_a_request_is_idle),
		cmocka_unit_test(a_database_s_connection_without_a_request_is_idle),
		cmocka_unit_test(a_reader_for_others_and_a_subscriber_are_idle),
		cmocka_unit_test(a_loop_beside_the_requests_is_idle),
		cmocka_unit_test(a_read_of_an_answer_is_not),
		cmocka_unit_test(workers_that_fight_for_the_lock_of_their_queue_are_not),
		cmocka_unit_test(the_jvms_own_threads_are_known_by_name),
		cmocka_unit_test(frames_without_a_method_do_not_decide),
		cmocka_unit_test(a_thread_that_enters_a_monitor_is_never_idle),
		cmocka_unit_test(threads_of_the_jvm_that_wait_to_be_asked_are_idle),
		cmocka_unit_test(a_frame_alone_says_yes_no_or_go_on),
		cmocka_unit_test(a_relocated_class_is_the_same),
		cmocka_unit_test(what_virtual_threads_have_their_carriers_do_is_idle),
		cmocka_unit_test(methods_that_a_user_adds_are_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
