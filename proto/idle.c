/* See idle.h. */
#include "proto/idle.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The methods in which a class waits for work; NULL = any of its methods. A copy of the class in
 * another package, such as io.grpc.netty.shaded.io.netty..., is the same class; so a name with the
 * end of a package, or without one, is that of all such classes. */
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
	{ "forkjoin.ForkJoinPool", "idleAwaitWork" }, /* Scala's until 2.11, Akka's until 2.5 */
	{ "forkjoin.ForkJoinPool", "scan" },
	{ "java.util.TimerThread", "mainLoop" },
	{ "java.lang.ref.ReferenceQueue", "remove" },
	{ "java.lang.ref.ReferenceQueue", "remove0" },
	{ "java.lang.ref.NativeReferenceQueue", "remove" },
	{ "java.lang.ref.Reference", "waitForReferencePendingList" },
	{ "java.lang.ref.Reference", "tryHandlePending" },
	{ "java.lang.ref.Reference$ReferenceHandler", "run" },
	{ "java.lang.VirtualThread$DelayedTaskSchedulers", NULL },
	{ "java.lang.VirtualThread", "takeVirtualThreadListToUnblock" }, /* JDK 24 and later */
	{ "java.lang.VirtualThread",
	  "sleepNanos" }, /* pinned, it parks its carrier: a sleep waits for no lock */
	{ "sun.misc.GC$Daemon", "run" },
	{ "sun.rmi.transport.GC$Daemon", "run" },
	{ "jdk.jfr.internal.PlatformRecorder", "takeNap" },
	{ "jdk.jfr.internal.PlatformRecorder", "periodicTask" },
	{ "sun.awt.AWTAutoShutdown", "run" },
	{ "java.awt.EventQueue", "getNextEvent" },
	{ "sun.nio.fs.AbstractWatchService", "take" },
	{ "sun.nio.fs.AbstractWatchService", "poll" },
	{ "sun.nio.fs.LinuxWatchService", "poll" },
	{ "com.sun.jmx.remote.internal.ServerCommunicatorAdmin$Timeout", "run" },
	{ "sun.net.www.http.KeepAliveCache", "run" },
	/* threads of a connection each, at the next request */
	{ "sun.rmi.transport.tcp.TCPTransport", "handleMessages" },
	{ "io.helidon.webserver.http1.Http1Prologue", NULL },
	{ "io.helidon.webserver.http2.Http2Connection", "readFrame" },
	{ "org.h2.server.TcpServerThread", "process" },
	{ "org.apache.activemq.transport.tcp.TcpTransport", "doRun" },
	{ "org.apache.derby.impl.drda.DRDAConnThread", "processCommands" },
	{ "org.hsqldb.server.ServerConnection", "run" },
	{ "org.apache.thrift.TBaseProcessor", "process" },
	{ "org.apache.thrift.TMultiplexedProcessor", "process" },
	{ "com.unboundid.ldap.listener.LDAPListenerClientConnection", "run" },
	/* threads that read a connection for those who wait for its answers */
	{ "com.sun.jndi.ldap.Connection", "run" },
	{ "com.unboundid.ldap.sdk.LDAPConnectionReader", "run" },
	{ "com.rabbitmq.client.impl.AMQConnection$MainLoop", "run" },
	{ "okhttp3.internal.http2.Http2Connection$ReaderRunnable", NULL },
	{ "org.eclipse.paho.client.mqttv3.internal.CommsReceiver", "run" },
	{ "org.eclipse.paho.mqttv5.client.internal.CommsReceiver", "run" },
	{ "org.jgroups.blocks.cs.TcpConnection$Receiver", "run" },
	/* subscribers, which wait for the next message */
	{ "io.nats.client.impl.NatsSubscription", "nextMessageInternal" },
	{ "redis.clients.jedis.JedisPubSubBase", "process" },
	{ "redis.clients.jedis.JedisPubSub", "process" },
	{ "com.hivemq.client.internal.mqtt.MqttBlockingClient$MqttPublishes", "receive" },
	{ "org.springframework.jms.listener.AbstractPollingMessageListenerContainer",
	  "receiveMessage" },
	{ "org.springframework.amqp.rabbit.listener.BlockingQueueConsumer", "nextMessage" },
	{ "org.apache.kafka.clients.consumer.internals.FetchBuffer", "awaitWakeup" },
	{ "org.apache.kafka.clients.consumer.internals.FetchBuffer", "awaitNotEmpty" },
	/* selectors, and loops that accept */
	{ "sun.nio.ch.SelectorImpl", "select" },
	{ "sun.nio.ch.SelectorImpl", "lockAndDoSelect" },
	{ "sun.nio.ch.EPollSelectorImpl", "doSelect" },
	{ "sun.nio.ch.EPollPoller", "poll" },
	{ "sun.nio.ch.Poller", "pollLoop" },
	{ "sun.nio.ch.Poller", "pollerLoop" },
	{ "sun.nio.ch.Poller", "updateLoop" }, /* JDK 21 */
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
	{ "io.netty.channel.epoll.EpollEventLoop", "epollWait" },
	{ "io.netty.channel.epoll.Native", "epollWait" },
	{ "io.netty.channel.epoll.Native", "epollWait0" },
	{ "io.netty.channel.uring.IoUringEventLoop", "run" },
	{ "io.netty.util.ThreadDeathWatcher$Watcher", "run" },
	/* Tomcat, Jetty, JBoss and Undertow, Grizzly and Payara, Thrift */
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
	{ "org.eclipse.jetty.util.thread.ReservedThreadExecutor$ReservedThread", "waitForTask" },
	{ "org.jboss.threads.EnhancedQueueExecutor$PoolThreadNode", "park" },
	{ "org.jboss.threads.EnhancedQueueExecutor$PoolThreadNode", "waitForTask" },
	{ "org.jboss.threads.EnhancedQueueExecutor$ThreadBody", "run" },
	{ "org.jboss.threads.EnhancedQueueExecutor$SchedulerThread", "run" },
	{ "com.arjuna.ats.internal.arjuna.recovery.PeriodicRecovery", "doPeriodicWait" },
	{ "com.arjuna.ats.internal.arjuna.recovery.PeriodicRecovery", "doBackoffWait" },
	{ "com.arjuna.ats.internal.arjuna.recovery.ExpiredEntryMonitor", "run" },
	{ "com.arjuna.ats.internal.arjuna.coordinator.ReaperThread", "run" },
	{ "com.arjuna.ats.internal.arjuna.coordinator.ReaperWorkerThread", "run" },
	{ "org.keycloak.models.sessions.infinispan.changes.PersistentSessionsWorker$BatchWorker",
	  "process" },
	{ "org.jboss.jca.core.connectionmanager.pool.idle.IdleRemover$IdleRemoverRunner", "run" },
	{ "org.jboss.jca.core.connectionmanager.pool.validator.ConnectionValidator$ConnectionValidatorRunner",
	  "run" },
	{ "org.glassfish.grizzly.threadpool.FixedThreadPool$BasicWorker", "getTask" },
	{ "org.glassfish.grizzly.threadpool.SyncThreadPool$SyncThreadWorker", "getTask" },
	{ "org.glassfish.grizzly.utils.DelayedExecutor$DelayedRunnable", "run" },
	{ "org.jvnet.hk2.config.Transactions$Notifier$1", "run" },
	{ "com.sun.enterprise.v3.server.AppServerStartup$1", "run" },
	{ "org.apache.thrift.server.TThreadedSelectorServer", "joinThreads" },
	{ "org.apache.thrift.server.TNonblockingServer", "joinSelector" },
	/* OSGi */
	{ "org.apache.karaf.main.Main", "doMonitor" },
	{ "org.apache.felix.framework.EventDispatcher", "run" },
	{ "org.apache.felix.framework.FrameworkStartLevelImpl", "run" },
	{ "org.apache.felix.framework.FrameworkWiringImpl", "run" },
	{ "org.apache.felix.framework.util.ThreadGate", "await" },
	{ "org.apache.felix.cm.impl.UpdateThread", "run" },
	{ "org.apache.felix.fileinstall.internal.DirectoryWatcher", "run" },
	{ "org.apache.felix.configurator.impl.WorkerQueue", "run" },
	{ "org.apache.felix.eventadmin.impl.tasks.AsyncDeliverTasks$TaskExecuter", "run" },
	/* loops of brokers, clients, pools, loggers, schedulers */
	{ "HashedWheelTimer$Worker", "waitForNextTick" }, /* Netty's, Dubbo's and others' */
	{ "jetbrains.exodus.core.execution.JobProcessorQueueAdapter", "waitForJobs" },
	{ "kafka.network.RequestChannel", "receiveRequest" },
	{ "kafka.utils.timer.SystemTimer", "advanceClock" },
	{ "org.apache.kafka.server.util.timer.SystemTimer", "advanceClock" },
	{ "org.apache.kafka.queue.KafkaEventQueue$EventHandler", "handleEvents" },
	{ "org.apache.kafka.raft.KafkaRaftClient", "poll" },
	{ "org.apache.kafka.server.quota.ClientQuotaManager$ThrottledChannelReaper", "doWork" },
	{ "kafka.server.ClientQuotaManager$ThrottledChannelReaper", "doWork" },
	{ "org.apache.kafka.server.util.ShutdownableThread", "pause" },
	{ "kafka.utils.ShutdownableThread", "pause" },
	{ "org.apache.kafka.coordinator.common.runtime.EventAccumulator", "poll" },
	{ "org.apache.kafka.coordinator.common.runtime.EventAccumulator", "take" },
	{ "org.apache.kafka.coordinator.group.runtime.EventAccumulator", "poll" },
	{ "org.apache.kafka.storage.internals.log.LogDirFailureChannel", "takeNextOfflineLogDir" },
	{ "kafka.server.LogDirFailureChannel", "takeNextOfflineLogDir" },
	{ "kafka.server.BrokerServer", "awaitShutdown" },
	{ "kafka.server.ControllerServer", "awaitShutdown" },
	{ "kafka.server.KafkaServer", "awaitShutdown" },
	{ "org.apache.kafka.connect.runtime.Connect", "awaitStop" },
	{ "org.apache.kafka.streams.processor.internals.DefaultStateUpdater$StateUpdaterThread",
	  "waitIfAllChangelogsCompletelyRead" },
	{ "org.apache.kafka.clients.consumer.internals.AbstractCoordinator$HeartbeatThread",
	  "run" },
	{ "org.apache.zookeeper.ClientCnxn$EventThread", "run" },
	{ "org.apache.cassandra.concurrent.SEPWorker", "doWaitSpin" },
	{ "org.apache.cassandra.concurrent.SEPWorker", "run" },
	{ "org.apache.zookeeper.server.PrepRequestProcessor", "run" },
	{ "org.apache.zookeeper.server.SyncRequestProcessor", "run" },
	{ "org.apache.zookeeper.server.RequestThrottler", "run" },
	{ "org.apache.zookeeper.server.SessionTrackerImpl", "run" },
	{ "org.apache.zookeeper.server.NIOServerCnxnFactory$ConnectionExpirerThread", "run" },
	{ "org.apache.zookeeper.server.ZooKeeperServerMain", "runFromConfig" },
	{ "org.apache.curator.framework.state.ConnectionStateManager", "processEvents" },
	{ "org.apache.curator.framework.imps.CuratorFrameworkImpl", "backgroundOperationsLoop" },
	{ "org.apache.zookeeper.server.quorum.CommitProcessor", "run" },
	{ "org.apache.cassandra.db.commitlog.AbstractCommitLogSegmentManager$AllocatorRunnable",
	  "run" },
	{ "org.apache.cassandra.utils.memory.MemtableCleanerThread$Clean", "run" },
	{ "org.apache.cassandra.db.commitlog.AbstractCommitLogService$SyncRunnable", "run" },
	{ "org.apache.spark.util.EventLoop$$anon$1", "run" },
	{ "org.apache.spark.rpc.netty.MessageLoop",
	  "org$apache$spark$rpc$netty$MessageLoop$$receiveLoop" },
	{ "org.apache.spark.scheduler.AsyncEventQueue", "$anonfun$dispatch$1" },
	{ "org.apache.spark.MapOutputTrackerMaster$MessageLoop", "run" },
	{ "org.apache.spark.util.SystemClock", "waitTillTime" },
	{ "org.apache.spark.streaming.ContextWaiter", "waitForStopOrError" },
	{ "org.apache.spark.streaming.receiver.BlockGenerator",
	  "org$apache$spark$streaming$receiver$BlockGenerator$$keepPushingBlocks" },
	{ "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution",
	  "executeOneBatch" },
	{ "org.sparkproject.jetty.util.thread.QueuedThreadPool$Runner", "idleJobPoll" },
	{ "org.apache.flink.streaming.runtime.tasks.mailbox.TaskMailboxImpl", "take" },
	{ "org.apache.flink.runtime.io.disk.iomanager.IOManagerAsync$ReaderThread", "run" },
	{ "org.apache.flink.runtime.io.disk.iomanager.IOManagerAsync$WriterThread", "run" },
	{ "org.apache.flink.runtime.io.network.api.writer.RecordWriter$OutputFlusher", "run" },
	{ "org.apache.ignite.internal.util.StripedExecutor$StripeConcurrentQueue", "take" },
	{ "org.apache.ignite.internal.processors.timeout.GridTimeoutProcessor$TimeoutWorker",
	  "body" },
	{ "org.apache.ignite.internal.util.IgniteUtils$22", "run" }, /* ignite-clock of 2.17 */
	{ "org.apache.ignite.internal.util.IgniteUtils$25", "run" }, /* of 2.14 to 2.16 */
	{ "org.apache.ignite.internal.LongJVMPauseDetector$1", "run" },
	{ "org.apache.ignite.spi.discovery.tcp.ServerImpl$MessageWorker", "body" },
	{ "org.apache.ignite.internal.managers.discovery.GridDiscoveryManager$DiscoveryWorker",
	  "body0" },
	{ "org.apache.ignite.internal.managers.discovery.GridDiscoveryManager$DiscoveryMessageNotifierWorker",
	  "body0" },
	{ "org.apache.ignite.internal.processors.cache.GridCachePartitionExchangeManager$ExchangeWorker",
	  "body0" },
	{ "org.apache.ignite.internal.processors.cache.GridCacheSharedTtlCleanupManager$CleanupWorker",
	  "body" },
	{ "org.apache.ignite.internal.processors.cache.persistence.wal.filehandle.FileHandleManagerImpl$WalSegmentSyncer",
	  "body" },
	{ "org.apache.ignite.internal.processors.cluster.ClusterProcessor$UpdateNotifierTimerTask",
	  "safeRun" },
	{ "org.apache.ignite.internal.processors.cluster.GridUpdateNotifier$1", "run" },
	{ "org.apache.ignite.internal.processors.rest.GridRestProcessor$4", "body" },
	{ "com.hazelcast.internal.util.concurrent.MPSCQueue", "take" },
	{ "com.hazelcast.internal.util.concurrent.MPSCQueue", "takeAll" },
	{ "com.hazelcast.internal.util.executor.CachedExecutorServiceDelegate$Worker", "run" },
	{ "com.hazelcast.internal.util.executor.StripedExecutor$Worker", "run" },
	{ "com.hazelcast.internal.partition.impl.MigrationThread", "doRun" },
	{ "com.hazelcast.internal.networking.nio.iobalancer.IOBalancerThread", "run" },
	{ "com.hazelcast.internal.cluster.impl.MulticastService", "receive" },
	{ "com.hazelcast.internal.diagnostics.HealthMonitor$HealthMonitorThread", "run" },
	{ "com.hazelcast.jet.impl.execution.TaskletExecutionService$CooperativeWorker", "run" },
	{ "com.hazelcast.spi.impl.operationparker.impl.OperationParkerImpl$ExpirationTask",
	  "doRun" },
	{ "com.hazelcast.spi.impl.operationexecutor.slowoperationdetector.SlowOperationDetector$DetectorThread",
	  "sleepInterval" },
	{ "com.hazelcast.spi.impl.operationexecutor.impl.OperationQueueImpl", "take" },
	{ "org.jgroups.util.TimeScheduler3", "run" },
	{ "org.jgroups.protocols.TransferQueueBundler", "run" },
	{ "org.jgroups.util.ConcurrentBlockingRingBuffer", "take" },
	{ "org.jgroups.protocols.UDP$PacketReceiver", "run" },
	{ "org.elasticsearch.threadpool.ThreadPool$CachedTimeThread", "run" },
	{ "org.opensearch.threadpool.ThreadPool$CachedTimeThread", "run" },
	{ "org.neo4j.io.pagecache.impl.muninn.MuninnPageCache", "parkEvictor" },
	{ "org.neo4j.kernel.impl.scheduler.TimeBasedTaskScheduler", "run" },
	{ "org.neo4j.monitoring.VmPauseMonitor", "monitor" },
	{ "org.apache.hadoop.ipc.Server$Handler", NULL }, /* run, work in 3.5 */
	{ "org.apache.hadoop.ipc.Client$Connection", "waitForWork" },
	{ "org.apache.hadoop.ipc.Client$Connection$RpcRequestSender", "run" },
	{ "org.apache.hadoop.util.JvmPauseMonitor$Monitor", "run" },
	{ "org.apache.hadoop.util.GcTimeMonitor", NULL },
	{ "org.apache.hadoop.fs.CachingGetSpaceUsed$RefreshThread", "run" },
	{ "org.apache.hadoop.hdfs.DataStreamer", "run" },
	{ "org.apache.hadoop.hdfs.DataStreamer", "work" },
	{ "org.apache.hadoop.hdfs.client.impl.LeaseRenewer", "run" },
	{ "org.apache.hadoop.hdfs.server.blockmanagement.BlockManager$RedundancyMonitor", "run" },
	{ "org.apache.hadoop.hdfs.server.blockmanagement.BlockManager$MarkedDeleteBlockScrubber",
	  "run" },
	{ "org.apache.hadoop.hdfs.server.blockmanagement.CacheReplicationMonitor", NULL },
	{ "org.apache.hadoop.hdfs.server.blockmanagement.HeartbeatManager$Monitor", "run" },
	{ "org.apache.hadoop.hdfs.server.blockmanagement.PendingReconstructionBlocks$PendingReconstructionMonitor",
	  "run" },
	{ "org.apache.hadoop.hdfs.server.datanode.BlockReceiver$PacketResponder",
	  "waitForAckHead" },
	{ "org.apache.hadoop.hdfs.server.datanode.VolumeScanner", NULL },
	{ "org.apache.hadoop.hdfs.server.namenode.FSNamesystem$LazyPersistFileScrubber", "run" },
	{ "org.apache.hadoop.hdfs.server.namenode.FSNamesystem$NameNodeEditLogRoller", "run" },
	{ "org.apache.hadoop.hdfs.server.namenode.FSNamesystem$NameNodeResourceMonitor", "run" },
	{ "org.apache.hadoop.hdfs.server.namenode.LeaseManager$Monitor", "run" },
	{ "org.apache.hadoop.hdfs.server.blockmanagement.BlockManager$BlockReportProcessingThread",
	  "processQueue" },
	{ "org.apache.hadoop.hdfs.server.datanode.BPServiceActor$CommandProcessingThread",
	  "processQueue" },
	{ "org.apache.hadoop.hdfs.server.datanode.IncrementalBlockReportManager",
	  "waitTillNextIBR" },
	{ "org.apache.hadoop.hdfs.server.namenode.FSEditLogAsync", "dequeueEdit" },
	{ "org.apache.hadoop.hbase.util.JvmPauseMonitor$Monitor", "run" },
	{ "org.apache.hadoop.hbase.util.Sleeper", "sleep" },
	{ "org.apache.hadoop.hbase.ipc.RpcHandler", "getCallRunner" },
	{ "org.apache.hadoop.hbase.io.hfile.LruBlockCache$EvictionThread", "run" },
	{ "org.apache.hadoop.hbase.monitoring.TaskMonitor$MonitorRunnable", "run" },
	{ "org.apache.hadoop.hbase.procedure2.AbstractProcedureScheduler", "poll" },
	{ "org.apache.hadoop.hbase.procedure2.util.DelayedUtil", "takeWithoutInterrupt" },
	{ "org.apache.hadoop.hbase.regionserver.LeaseManager", "run" },
	{ "org.apache.hadoop.hbase.regionserver.MemStoreFlusher$FlushHandler", "run" },
	{ "org.apache.hadoop.hbase.wal.AbstractWALRoller", "run" },
	{ "org.jctools.queues.MpscBlockingConsumerArrayQueue", "take" },
	{ "org.apache.pulsar.common.util.collections.GrowableArrayBlockingQueue", "take" },
	{ "org.apache.bookkeeper.proto.BookieServer$DeathWatcher", "run" },
	{ "org.apache.rocketmq.common.ServiceThread", "waitForRunning" },
	{ "org.apache.rocketmq.client.impl.consumer.PullMessageService", "run" },
	{ "org.apache.rocketmq.remoting.netty.NettyRemotingAbstract$NettyEventExecutor", "run" },
	{ "org.apache.rocketmq.broker.processor.PopReviveService", "consumeReviveMessage" },
	{ "org.apache.rocketmq.store.CommitLog$FlushRealTimeService", "run" },
	{ "org.apache.rocketmq.store.DefaultMessageStore$ReputMessageService", "run" },
	{ "org.apache.rocketmq.store.timer.TimerMessageStore$TimerDequeueGetMessageService",
	  "run" },
	{ "org.apache.rocketmq.store.timer.TimerMessageStore$TimerDequeuePutMessageService",
	  "run" },
	{ "org.apache.rocketmq.store.timer.TimerMessageStore$TimerEnqueuePutService",
	  "fetchTimerRequests" },
	{ "com.alibaba.nacos.common.notify.DefaultPublisher", "openEventHandler" },
	{ "com.alibaba.nacos.client.config.impl.ClientWorker$ConfigRpcTransportClient", NULL },
	{ "com.alibaba.nacos.common.remote.client.RpcClient", "lambda$start$0" },
	{ "com.alibaba.csp.sentinel.util.TimeUtil", "run" },
	{ "com.alibaba.druid.pool.DruidDataSource$CreateConnectionThread", "run" },
	{ "com.alibaba.druid.pool.DruidDataSource$DestroyConnectionThread", "run" },
	{ "org.flowable.job.service.impl.asyncexecutor.AcquireAsyncJobsDueRunnable", "sleep" },
	{ "org.flowable.job.service.impl.asyncexecutor.AcquireTimerJobsRunnable", "sleep" },
	{ "com.xxl.job.core.thread.JobThread", "run" },
	{ "com.xxl.job.core.thread.TriggerCallbackThread$1", "run" },
	{ "com.github.kagkarlsson.scheduler.Waiter", "doWait" },
	{ "io.temporal.internal.worker.ActivityPollTask", NULL },
	{ "io.temporal.internal.worker.WorkflowPollTask", NULL },
	{ "com.mongodb.internal.connection.DefaultServerMonitor$ServerMonitorRunnable",
	  "waitForNext" },
	{ "com.mongodb.internal.connection.DefaultServerMonitor$ServerMonitor", NULL },
	{ "com.mongodb.internal.connection.BaseCluster$WaitQueueHandler", "run" },
	{ "com.couchbase.client.core.cnc.DefaultEventBus", NULL },
	{ "com.couchbase.client.core.cnc.OrphanReporter$Worker", "run" },
	{ "com.couchbase.client.core.cnc.metrics.LoggingMeter$Worker", "run" },
	{ "com.couchbase.client.core.cnc.tracing.ThresholdLoggingTracer$Worker", "run" },
	{ "com.couchbase.client.core.cnc.apptelemetry.reporter.AppTelemetryReporterImpl",
	  "sleepUntilInterrupted" },
	{ "com.couchbase.client.core.transaction.cleanup.CoreTransactionsCleanup", NULL },
	{ "io.grpc.internal.ServerImpl", "awaitTermination" },
	{ "io.nats.client.impl.MessageQueue", "accumulate" },
	{ "org.jruby.ext.thread.Queue", "takeInternal" },
	{ "org.postgresql.util.LazyCleaner$1", "run" },
	{ "io.opentelemetry.sdk.trace.export.BatchSpanProcessor$Worker", "run" },
	{ "io.opentelemetry.sdk.logs.export.BatchLogRecordProcessor$Worker", "run" },
	{ "zipkin2.reporter.AsyncReporter$Flusher", "run" },
	{ "zipkin2.reporter.AsyncReporter$BoundedAsyncReporter", "flush" },
	/* SkyWalking's agent and server */
	{ "datacarrier.consumer.ConsumerThread", "run" },
	{ "datacarrier.consumer.MultipleChannelsConsumer", "run" },
	{ "org.apache.derby.impl.services.daemon.BasicDaemon", "rest" },
	{ "org.apache.camel.component.seda.SedaConsumer", "doRun" },
	{ "org.apache.activemq.thread.PooledTaskRunner", "run" },
	{ "org.apache.activemq.thread.DedicatedTaskRunner", "runTask" },
	{ "org.apache.activemq.transport.tcp.TcpTransportServer$1", "run" },
	{ "org.apache.activemq.store.kahadb.disk.journal.DataFileAppender", "processQueue" },
	{ "org.apache.activemq.artemis.core.remoting.server.impl.RemotingServiceImpl$FailureCheckAndFlushThread",
	  "run" },
	{ "org.apache.activemq.artemis.core.io.buffer.TimedBuffer", "sleep" },
	{ "org.apache.activemq.artemis.core.io.buffer.TimedBuffer$CheckTimer", NULL },
	{ "org.eclipse.paho.client.mqttv3.internal.ClientState", "get" },
	{ "org.eclipse.paho.client.mqttv3.internal.CommsCallback", "run" },
	{ "org.eclipse.paho.mqttv5.client.internal.ClientState", "get" },
	{ "org.eclipse.paho.mqttv5.client.internal.CommsCallback", "run" },
	{ "org.apache.http.impl.client.IdleConnectionEvictor$1", "run" },
	{ "org.apache.hc.client5.http.impl.IdleConnectionEvictor", NULL },
	{ "software.amazon.awssdk.http.apache.internal.conn.IdleConnectionReaper$ReaperTask",
	  "run" },
	{ "com.amazonaws.http.IdleConnectionReaper", "run" },
	{ "org.h2.mvstore.FileStore$BackgroundWriterThread", "run" },
	{ "org.h2.mvstore.MVStore$BackgroundWriterThread", "run" },
	{ "org.apache.solr.core.CloserThread", "run" },
	{ "com.mysql.cj.jdbc.AbandonedConnectionCleanupThread", "run" },
	{ "oracle.jdbc.driver.BlockSource$ThreadedCachingBlockSource$BlockReleaser", "run" },
	{ "com.mchange.v2.async.ThreadPoolAsynchronousRunner$PoolThread", "run" },
	{ "com.lmax.disruptor.BlockingWaitStrategy", "waitFor" },
	{ "com.lmax.disruptor.LiteBlockingWaitStrategy", "waitFor" },
	{ "com.lmax.disruptor.TimeoutBlockingWaitStrategy", "waitFor" },
	{ "com.lmax.disruptor.SleepingWaitStrategy", "waitFor" },
	{ "com.lmax.disruptor.YieldingWaitStrategy", "waitFor" },
	{ "org.apache.logging.log4j.core.async.TimeoutBlockingWaitStrategy", NULL },
	{ "org.agrona.concurrent.BackoffIdleStrategy", "idle" },
	{ "org.agrona.concurrent.ControllableIdleStrategy", "idle" },
	{ "org.agrona.concurrent.SleepingIdleStrategy", "idle" },
	{ "org.agrona.concurrent.SleepingMillisIdleStrategy", "idle" },
	{ "org.drools.core.phreak.SynchronizedPropagationList", "waitOnRest" },
	{ "org.apache.log4j.AsyncAppender$Dispatcher", "run" },
	{ "org.apache.logging.log4j.core.async.AsyncAppenderEventDispatcher", "run" },
	{ "org.apache.logging.log4j.core.async.AsyncAppenderEventDispatcher", "dispatchAll" },
	{ "ch.qos.logback.core.AsyncAppenderBase$Worker", "run" },
	{ "org.quartz.simpl.SimpleThreadPool$WorkerThread", "run" },
	{ "org.quartz.core.QuartzSchedulerThread", "run" },
	{ "org.axonframework.eventsourcing.eventstore.EmbeddedEventStore$EventProducer",
	  "waitForData" },
	{ "org.axonframework.eventsourcing.eventstore.EmbeddedEventStore$EventConsumer",
	  "peekGlobalStream" },
	{ "io.trino.execution.executor.timesharing.TimeSharingTaskExecutor$TaskRunner", "run" },
	{ "execution.executor.TaskExecutor$TaskRunner", "run" }, /* older Trino's, and Presto's */
	{ "io.trino.execution.executor.scheduler.BlockingSchedulingQueue", "dequeue" },
	{ "io.trino.execution.scheduler.faulttolerant.BinPackingNodeAllocatorService", NULL },
	{ "kotlinx.coroutines.scheduling.CoroutineScheduler$Worker", "park" },
	{ "kotlinx.coroutines.scheduling.CoroutineScheduler$Worker", "tryPark" },
	{ "kotlinx.coroutines.scheduling.CoroutineScheduler$Worker", "runWorker" },
	{ "kotlinx.coroutines.DefaultExecutor", "run" },
	{ "okhttp3.internal.concurrent.TaskRunner", "awaitTaskToRun" },
	{ "okhttp3.internal.concurrent.TaskRunner$RealBackend", "coordinatorWait" },
	{ "okio.AsyncTimeout", "awaitTimeout" },
	{ "okio.AsyncTimeout$Companion", "awaitTimeout" },
	{ "okio.AsyncTimeout$Companion", "awaitTimeout$okio" },
	{ "akka.actor.LightArrayRevolverScheduler", "waitNanos" },
	{ "org.apache.pekko.actor.LightArrayRevolverScheduler", "waitNanos" },
	{ "cats.effect.unsafe.WorkerThread", NULL },
	{ "zio.internal.ZScheduler$$anon$3", "run" },
	{ "io.questdb.mp.Worker", "run" },
};

/* Classes that wait on behalf of their callers. */
static const char *const plumbing[] = {
	"java.util.concurrent.",
	"java.lang.Object",
	"java.lang.Thread",
	"java.lang.VirtualThread",
	"java.lang.System$", /* LockSupport parks a virtual thread by way of one of them */
	"java.lang.ref.",
	"java.io.",
	"jdk.internal.",
	"sun.misc.Unsafe",
	"sun.nio.ch.",
	"java.net.",
	"java.util.TimerThread",
	"sun.security.ssl.",
	"io.netty.channel.epoll.",
	"io.helidon.common.buffers.",
	"io.helidon.common.socket.",
	"io.helidon.webserver.ConnectionHandler$",
	"org.apache.activemq.openwire.OpenWireFormat",
	"org.apache.activemq.transport.tcp.Tcp",
	"org.apache.derby.impl.drda.DDMReader",
	"com.unboundid.asn1.",
	"com.unboundid.ldap.protocol.LDAPMessage",
	"com.rabbitmq.client.impl.Frame",
	"com.rabbitmq.client.impl.SocketFrameHandler",
	"redis.clients.jedis.Connection",
	"redis.clients.jedis.Protocol",
	"redis.clients.jedis.util.RedisInputStream",
	"org.h2.value.Transfer",
	"org.apache.hc.core5.util.TimeValue",
	"org.eclipse.jetty.util.thread.AutoLock$",
	"org.sparkproject.jetty.util.thread.AutoLock$",
	"org.apache.thrift.protocol.",
	"org.apache.thrift.transport.",
	"okhttp3.internal.http2.Http2Reader",
	"org.eclipse.paho.client.mqttv3.internal.wire.MqttInputStream",
	"org.eclipse.paho.mqttv5.client.wire.MqttInputStream",
	"org.apache.activemq.ActiveMQMessageConsumer",
	"org.apache.activemq.artemis.core.client.impl.ClientConsumerImpl",
	"org.apache.activemq.artemis.jms.client.ActiveMQMessageConsumer",
	"org.apache.cassandra.utils.concurrent.Semaphore$",
	"org.apache.ignite.internal.util.IgniteUtils",
	"org.apache.rocketmq.common.CountDownLatch2",
	"oracle.jdbc.internal.Monitor$",
	"com.lmax.disruptor.util.Util",
	"io.questdb.std.Os",
	"io.grpc.stub.ClientCalls",
	"io.temporal.api.workflowservice.v1.WorkflowServiceGrpc$",
	"org.springframework.jms.connection.Cached",
	"org.springframework.jms.support.destination.JmsDestinationAccessor",
	"okio.",
};

/* Classes whose methods wait for a contended lock, even if it is a queue's own: never idle. */
static const char *const contended[] = {
	"java.util.concurrent.locks.ReentrantLock",
	"java.util.concurrent.locks.ReentrantReadWriteLock",
	"java.util.concurrent.locks.StampedLock",
};

static char proto_idle_dotted(char c)
{
	return c == '/' ? '.' : c;
}

/* Returns @s behind @prefix; NULL = @s does not begin with it. */
static const char *proto_idle_behind(const char *s, const char *prefix)
{
	for (; *prefix; s++, prefix++)
		if (proto_idle_dotted(*s) != *prefix)
			return NULL;
	return s;
}

static bool proto_idle_is(const char *s, const char *text)
{
	const char *rest = proto_idle_behind(s, text);

	return rest && !*rest;
}

/* Is @class_name that class, or a copy of it whose package has another one in front? */
static bool proto_idle_is_class(const char *class_name, size_t len, const char *mark)
{
	size_t n = strlen(mark);

	if (n > len)
		return false;
	if (n < len && proto_idle_dotted(class_name[len - n - 1]) != '.')
		return false;
	return proto_idle_is(class_name + len - n, mark);
}

static bool begins_with_one(const char *s, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (proto_idle_behind(s, prefixes[i]))
			return true;
	return false;
}

/* A queue of a program or a library wraps one of the JDK's. Many pools have one: only who asks it
 * knows what the wait is for. */
static bool proto_idle_is_queue(const char *class_name, const char *method)
{
	const char *simple = class_name;

	if (!proto_idle_is(method, "take") && !proto_idle_is(method, "poll"))
		return false;
	for (const char *s = class_name; *s; s++)
		if (proto_idle_dotted(*s) == '.')
			simple = s + 1;
	return strstr(simple, "Queue") != NULL;
}

/* What a user has added. The next names go into the text that is not in use, and the last byte of
 * each stays NUL, so a thread that still reads an older one finds an end. */
static struct {
	char text[2][IDLE_ADDED_MAX];
	const char *now; /* NULL = nothing was ever added */
	uint16_t version;
} added;

/* Is the name at @name, up to a comma or the end, that class, or that method of it? */
static bool proto_idle_is_added(const char *name, const char *class_name, const char *method)
{
	for (; *class_name; name++, class_name++)
		if (*name != proto_idle_dotted(*class_name))
			return false;
	if (*name == '.')
		for (name++; *method && *name == *method; name++)
			method++;
	else
		method = "";
	return !*method && (!*name || *name == ',');
}

static bool proto_idle_is_one_added(const char *class_name, const char *method)
{
	const char *name = __atomic_load_n(&added.now, __ATOMIC_ACQUIRE);

	while (name && *name) {
		if (proto_idle_is_added(name, class_name, method))
			return true;
		name = strchr(name, ',');
		if (name)
			name++;
	}
	return false;
}

void idle_add(const char *names, size_t len)
{
	char *next = added.text[added.now == added.text[0]];

	len = len < IDLE_ADDED_MAX ? len : IDLE_ADDED_MAX - 1;
	if (strlen(added.now ? added.now : "") == len && (!len || !memcmp(added.now, names, len)))
		return;
	memset(next, 0, IDLE_ADDED_MAX);
	if (len)
		memcpy(next, names, len);
	__atomic_store_n(&added.now, next, __ATOMIC_RELEASE);
	__atomic_store_n(&added.version, (uint16_t)(added.version + 1), __ATOMIC_RELEASE);
}

uint16_t idle_version(void)
{
	return __atomic_load_n(&added.version, __ATOMIC_ACQUIRE);
}

enum idle_sight idle_frame(const char *class_name, const char *method)
{
	size_t len = strlen(class_name);

	if (begins_with_one(class_name, contended, COUNT(contended)))
		return IDLE_NO;
	if (proto_idle_is_one_added(class_name, method))
		return IDLE_YES;
	for (size_t i = 0; i < COUNT(marks); i++)
		if (proto_idle_is_class(class_name, len, marks[i].class_name) &&
		    (!marks[i].method || proto_idle_is(method, marks[i].method)))
			return IDLE_YES;
	return begins_with_one(class_name, plumbing, COUNT(plumbing)) ||
			       proto_idle_is_queue(class_name, method)
		       ? IDLE_UNDECIDED
		       : IDLE_NO;
}
