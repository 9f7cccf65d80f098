import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.sdk.trace.IdGenerator;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.samplers.Sampler;
import java.util.concurrent.ThreadLocalRandom;
import java.util.zip.Deflater;

/**
 * Threads that enter and leave spans whose ids the stack tells: TraceKnown TRACER THREADS VIRTUAL GC_MS.
 *
 * Of OpenTelemetry ("otel") span N has the trace id (32 digits) and the span id (16 digits) N, in hexadecimal; Brave's
 * ("brave", "brave_inherited") trace id has 16 digits for even N, and N twice for others; an MDC has "traceId": logback's ("mdc"), that
 * of slf4j itself ("jul"), of Log4j 1, of Log4j 2 ("log4j" and "log4j_in_place"; of earlier versions "log4j_sorted" and "log4j_wrapped") and of JBoss;
 * "vertx" and "quarkus" are OpenTelemetry whose contexts are in the local data of Vert.x, "quarkus_mdc" is an MDC there: half of
 * the threads are event loops, the others are within the Context for a while;
 * of SkyWalking ("skywalking", with its agent) the trace id is known.trace.N; those that the thread publishes in
 * thread-local storage ("published": OTEP 4947; "elastic") are as OpenTelemetry's. work_N is on the stack for
 * as long as it is current and nothing else is; "outside" is there while none is; while it changes, "change" is the
 * innermost of these. One span in four is not sampled, spans are nested, and what they do takes its time in
 * Java code, in native code, in allocations and in waits. Other ThreadLocals come and go beside.
 */
public class TraceKnown {
    static final int SPANS = 16;
    static final ThreadLocal<Integer> wanted = new ThreadLocal<>();
    static volatile double sink;
    static volatile Object kept;
    static final Object lock = new Object();

    /** The trace and span ids are made from numbers that the thread has chosen before. */
    static class Numbers implements IdGenerator {
        public String generateSpanId() {
            return String.format("%016x", wanted.get());
        }

        public String generateTraceId() {
            return String.format("%032x", wanted.get());
        }
    }

    /** A span that is not sampled is of another class. */
    static final Sampler SOME = Sampler.parentBased(new Sampler() {
        public io.opentelemetry.sdk.trace.samplers.SamplingResult shouldSample(Context parent, String trace, String name,
                io.opentelemetry.api.trace.SpanKind kind, io.opentelemetry.api.common.Attributes attributes,
                java.util.List<io.opentelemetry.sdk.trace.data.LinkData> links) {
            return Integer.parseInt(name) % 4 == 3 ? io.opentelemetry.sdk.trace.samplers.SamplingResult.drop()
                    : io.opentelemetry.sdk.trace.samplers.SamplingResult.recordAndSample();
        }

        public String getDescription() {
            return "some";
        }
    });

    static void compute(int n) {
        double x = n;
        for (int i = 0; i < 20000; i++)
            x = Math.sqrt(x + i);
        sink = x;
    }

    static void allocate() {
        for (int i = 0; i < 200; i++)
            kept = new byte[1000 + i];
    }

    static void deflate() {
        byte[] in = new byte[20000], out = new byte[30000];
        Deflater d = new Deflater();
        d.setInput(in);
        d.finish();
        d.deflate(out);
        d.end();
    }

    static void locked() {
        synchronized (lock) {
            compute(1);
        }
    }

    @SuppressWarnings("unchecked")
    static void others() {
        ThreadLocal<Object>[] all = new ThreadLocal[12];
        for (int i = 0; i < all.length; i++) {
            all[i] = new ThreadLocal<>();
            all[i].set("other " + i);
        }
        for (int i = 0; i < all.length; i += 2)
            all[i].remove();
    }

    static void some(int n) {
        switch (ThreadLocalRandom.current().nextInt(6)) {
        case 0: allocate(); break;
        case 1: deflate(); break;
        case 2: locked(); break;
        case 3: others(); break;
        default: compute(n);
        }
    }

    static void inside(int n, int depth) {
        for (int i = 0; i < 4; i++)
            some(n);
        if (depth < 3 && ThreadLocalRandom.current().nextInt(3) == 0)
            change(ThreadLocalRandom.current().nextInt(SPANS), depth + 1);
        some(n);
    }

    static void work_0(int d) { inside(0, d); }
    static void work_1(int d) { inside(1, d); }
    static void work_2(int d) { inside(2, d); }
    static void work_3(int d) { inside(3, d); }
    static void work_4(int d) { inside(4, d); }
    static void work_5(int d) { inside(5, d); }
    static void work_6(int d) { inside(6, d); }
    static void work_7(int d) { inside(7, d); }
    static void work_8(int d) { inside(8, d); }
    static void work_9(int d) { inside(9, d); }
    static void work_10(int d) { inside(10, d); }
    static void work_11(int d) { inside(11, d); }
    static void work_12(int d) { inside(12, d); }
    static void work_13(int d) { inside(13, d); }
    static void work_14(int d) { inside(14, d); }
    static void work_15(int d) { inside(15, d); }

    static void work(int n, int d) {
        switch (n) {
        case 0: work_0(d); break;
        case 1: work_1(d); break;
        case 2: work_2(d); break;
        case 3: work_3(d); break;
        case 4: work_4(d); break;
        case 5: work_5(d); break;
        case 6: work_6(d); break;
        case 7: work_7(d); break;
        case 8: work_8(d); break;
        case 9: work_9(d); break;
        case 10: work_10(d); break;
        case 11: work_11(d); break;
        case 12: work_12(d); break;
        case 13: work_13(d); break;
        case 14: work_14(d); break;
        default: work_15(d);
        }
    }

    interface Under {
        void close();
    }

    /** Each tracer is in a class of its own, so that only the one that is used is loaded. */
    interface Tracing {
        Under begin(int n);
    }

    static class Otel implements Tracing {
        static final Tracer tracer = SdkTracerProvider.builder().setIdGenerator(new Numbers()).setSampler(SOME).build().get("known");

        public Under begin(int n) {
            Span span;
            wanted.set(n);
            if ((n - 1) % 4 == 2) /* a remote parent: not a span of this SDK */
                span = Span.wrap(SpanContext.createFromRemoteParent(String.format("%032x", n), String.format("%016x", n),
                        TraceFlags.getSampled(), TraceState.getDefault()));
            else
                span = tracer.spanBuilder(Integer.toString(n - 1)).setNoParent().startSpan();
            Scope scope = span.makeCurrent();
            return () -> {
                scope.close();
                span.end();
            };
        }
    }

    static class Brave implements Tracing {
        final brave.propagation.CurrentTraceContext current;

        Brave(brave.propagation.CurrentTraceContext current) {
            this.current = current;
        }

        public Under begin(int n) {
            return current.newScope(brave.propagation.TraceContext.newBuilder().traceIdHigh(n % 2 == 0 ? 0 : n).traceId(n).spanId(n)
                    .build())::close;
        }
    }

    /** An MDC. */
    static class Mdc implements Tracing {
        final java.util.function.BiConsumer<String, String> put;
        final java.util.function.Function<String, Object> get;
        final java.util.function.Consumer<String> remove;

        Mdc(java.util.function.BiConsumer<String, String> put, java.util.function.Function<String, Object> get,
                java.util.function.Consumer<String> remove) {
            this.put = put;
            this.get = get;
            this.remove = remove;
        }

        public Under begin(int n) {
            Object before = get.apply("traceId");
            put.accept("other", "x" + n);
            put.accept("traceId", "no " + n); /* not a valid id: it contains a blank */
            put.accept("traceId", String.format("%032x", n));
            put.accept("a" + n % 4, "x" + n); /* sorted before it */
            put.accept("z" + n % 4, "x" + n);
            return () -> {
                remove.accept("a" + n % 4);
                if (before == null)
                    remove.accept("traceId");
                else
                    put.accept("traceId", (String) before);
            };
        }
    }

    /** SkyWalking's classes, which its agent adds to the class path; within a trace another one
     * would be part of the same trace. */
    static class SkyWalking implements Tracing {
        static String base64(String text) {
            return java.util.Base64.getEncoder().encodeToString(text.getBytes(java.nio.charset.StandardCharsets.UTF_8));
        }

        public Under begin(int n) {
            org.apache.skywalking.apm.agent.core.context.ContextCarrier carrier = new org.apache.skywalking.apm.agent.core.context.ContextCarrier();
            for (org.apache.skywalking.apm.agent.core.context.CarrierItem item = carrier.items(); item.hasNext();) {
                item = item.next();
                if (item.getHeadKey().equals("sw8"))
                    item.setHeadValue("1-" + base64("known.trace." + n) + "-" + base64("known.segment") + "-3-" + base64("a") + "-"
                            + base64("b") + "-" + base64("/c") + "-" + base64("d:80"));
            }
            org.apache.skywalking.apm.agent.core.context.ContextManager.createEntrySpan("known", carrier);
            return org.apache.skywalking.apm.agent.core.context.ContextManager::stopSpan;
        }
    }

    /** Class loaders that each load a library which publishes, and that are dropped while a
     * thread has a context in it. */
    static class Dropped {
        static Class<?> load(byte[] of, String copy) throws Exception {
            System.setProperty("publishes", copy);
            return Class.forName("TracePublished", true, new ClassLoader(null) {
                protected Class<?> findClass(String name) {
                    return defineClass(name, of, 0, of.length);
                }
            });
        }

        static boolean isMapped(String copy) throws java.io.IOException {
            for (String line : java.nio.file.Files.readAllLines(java.nio.file.Paths.get("/proc/self/maps")))
                if (line.contains(copy))
                    return true;
            return false;
        }

        /** The thread's context was in a library that is gone, so a sample in outside() has no
         * ids. */
        static void loop(String library) throws Exception {
            byte[] of = java.nio.file.Files.readAllBytes(java.nio.file.Paths.get(TraceKnown.class.getResource("TracePublished.class").toURI()));
            String directory = java.nio.file.Paths.get(TraceKnown.class.getResource("TraceKnown.class").toURI()).getParent().toString();
            for (int n = 1;; n++) {
                java.nio.file.Path copy = java.nio.file.Paths.get(directory, "dropped" + n + ".so");
                java.nio.file.Files.copy(java.nio.file.Paths.get(library), copy);
                load(of, copy.toString()).getMethod("number", long.class).invoke(null, 2L * n + 1001);
                compute(n);
                while (isMapped(copy.toString()))
                    Thread.sleep(5);
                java.nio.file.Files.delete(copy);
                for (int i = 0; i < 20; i++)
                    outside();
                System.out.println("DROPPED " + n);
            }
        }
    }

    static class Published implements Tracing {
        public Under begin(int n) {
            long before = TracePublished.number(n);
            return () -> TracePublished.number(before);
        }
    }

    /** The record of Elastic's agents, written by their library. */
    static class Elastic implements Tracing {
        final ThreadLocal<Integer> now = ThreadLocal.withInitial(() -> 0);

        static void put(int n) {
            java.nio.ByteBuffer b = co.elastic.otel.UniversalProfilingCorrelation.getCurrentThreadStorage(true, 37);
            b.order(java.nio.ByteOrder.nativeOrder());
            b.put(2, (byte) 0);
            sink = 0;
            b.putShort(0, (short) 1);
            b.put(3, (byte) (n == 0 ? 0 : 1));
            b.order(java.nio.ByteOrder.BIG_ENDIAN);
            b.putLong(5, 0);
            b.putLong(13, n);
            b.putLong(21, n);
            b.putLong(29, 1);
            sink = 0;
            b.put(2, (byte) 1);
        }

        public Under begin(int n) {
            int before = now.get();
            now.set(n);
            put(n);
            return () -> {
                now.set(before);
                put(before);
            };
        }
    }

    /** Contexts of Vert.x, each of one thread, as those of requests are. */
    static class Contexts {
        static final io.vertx.core.Vertx vertx = io.vertx.core.Vertx.vertx(new io.vertx.core.VertxOptions().setEventLoopPoolSize(16)
                .setBlockedThreadCheckInterval(1_000_000_000));

        static Object call(Object of, String name, Object... args) {
            try {
                for (java.lang.reflect.Method m : of.getClass().getMethods())
                    if (m.getName().equals(name) && m.getParameterCount() == args.length) {
                        m.setAccessible(true);
                        return m.invoke(of, args);
                    }
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
            throw new IllegalStateException(name);
        }

        static io.vertx.core.Context own() {
            return (io.vertx.core.Context) call(vertx.getOrCreateContext(), "duplicate");
        }

        static void loopIn(io.vertx.core.Context context) {
            for (;;) {
                Object before = call(context, "beginDispatch");
                for (int i = 0; i < 100; i++)
                    once();
                call(context, "endDispatch", before);
                outside();
            }
        }
    }

    static Tracing tracing;
    static int outermost; /* depth */

    static void change(int n, int depth) {
        Under under = tracing.begin(n + 1);
        try {
            work(n, depth);
        } finally {
            under.close();
        }
    }

    static void outside() {
        some(3);
    }

    static void once() {
        change(ThreadLocalRandom.current().nextInt(SPANS), outermost);
        outside();
        if (ThreadLocalRandom.current().nextInt(8) == 0)
            pause();
    }

    static void loop() {
        for (;;)
            once();
    }

    static void pause() {
        try {
            Thread.sleep(1);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static Thread start(boolean virtual, int i, boolean vertx) throws Exception {
        Runnable run = TraceKnown::loop;
        if (vertx && !virtual && i % 2 == 0)
            run = () -> Contexts.own().runOnContext(none -> loop());
        else if (vertx)
            run = () -> Contexts.loopIn(Contexts.own());
        if (virtual)
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, run);
        Thread t = new Thread(run, "known-" + i);
        t.setDaemon(true);
        t.start();
        return t;
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[1]), virtual = Integer.parseInt(args[2]), gcMs = Integer.parseInt(args[3]);
        switch (args[0]) {
        case "otel":
        case "vertx_map":
        case "vertx_array":
        case "vertx":
        case "quarkus": tracing = new Otel(); break;
        case "quarkus_mdc":
            tracing = new Mdc(io.quarkus.vertx.core.runtime.VertxMDC.INSTANCE::put, io.quarkus.vertx.core.runtime.VertxMDC.INSTANCE::get,
                    io.quarkus.vertx.core.runtime.VertxMDC.INSTANCE::remove);
            break;
        case "brave": tracing = new Brave(brave.propagation.ThreadLocalCurrentTraceContext.create()); break;
        case "brave_inherited": tracing = new Brave(brave.propagation.CurrentTraceContext.Default.inheritable()); break;
        case "mdc":
        case "jul": tracing = new Mdc(org.slf4j.MDC::put, org.slf4j.MDC::get, org.slf4j.MDC::remove); break;
        case "log4j1": tracing = new Mdc(org.apache.log4j.MDC::put, org.apache.log4j.MDC::get, org.apache.log4j.MDC::remove); break;
        case "log4j":
        case "log4j_sorted":
        case "log4j_wrapped":
        case "log4j_in_place":
            tracing = new Mdc(org.apache.logging.log4j.ThreadContext::put, org.apache.logging.log4j.ThreadContext::get,
                    org.apache.logging.log4j.ThreadContext::remove);
            break;
        case "jboss": tracing = new Mdc(org.jboss.logmanager.MDC::put, org.jboss.logmanager.MDC::get, org.jboss.logmanager.MDC::remove); break;
        case "skywalking": tracing = new SkyWalking(); break;
        case "published": tracing = new Published(); break;
        case "elastic": tracing = new Elastic(); break;
        default: throw new IllegalArgumentException(args[0]);
        }
        outermost = tracing instanceof SkyWalking ? 3 : 0;
        for (int i = 0; i < threads + virtual; i++)
            start(i >= threads, i, args[0].startsWith("vertx") || args[0].startsWith("quarkus"));
        System.out.println("READY");
        if (System.getProperty("dropped") != null) {
            tracing.begin(1).close(); /* has loaded its library, before the property names another one */
            String library = System.getProperty("dropped");
            Thread t = new Thread(() -> {
                try {
                    Dropped.loop(library);
                } catch (Exception e) {
                    e.printStackTrace();
                    System.exit(1);
                }
            }, "dropped");
            t.setDaemon(true);
            t.start();
        }
        long end = System.nanoTime() + 300_000_000_000L;
        while (System.nanoTime() < end && System.in.available() == 0) {
            Thread.sleep(gcMs > 0 ? gcMs : 20);
            if (gcMs > 0)
                System.gc();
        }
        System.exit(0);
    }
}
