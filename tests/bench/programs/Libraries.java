import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.StringReader;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import javax.xml.transform.stream.StreamSource;
import net.sf.saxon.s9api.Processor;
import net.sf.saxon.s9api.XQueryEvaluator;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.LowerCaseFilter;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.standard.StandardTokenizer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.FuzzyQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.jetbrains.kotlin.cli.common.ExitCode;
import org.jetbrains.kotlin.cli.jvm.K2JVMCompiler;
import org.jruby.embed.LocalContextScope;
import org.jruby.embed.ScriptingContainer;

/** Code that nobody wrote for a profiler's test: Libraries NAME works with one library in two threads. */
public class Libraries {
    static final AtomicInteger runs = new AtomicInteger();

    static Callable<?> json() throws IOException {
        ObjectMapper mapper = new ObjectMapper();
        Map<String, Object> map = new HashMap<>();
        for (int i = 0; i < 2000; i++) map.put("key \"" + i, i % 3 == 0 ? Map.of("a", i, "b", true) : i % 3 == 1 ? i * 1.25e-3 : "\u00e9 ] text " + i);
        String text = mapper.writeValueAsString(map);
        return () -> mapper.writerWithDefaultPrettyPrinter().writeValueAsBytes(mapper.readTree(text));
    }

    static boolean sql() throws SQLException {
        try (Connection c = DriverManager.getConnection("jdbc:h2:mem:"); Statement s = c.createStatement()) {
            s.execute("create table t(id int primary key, a int, b varchar(100))");
            try (PreparedStatement p = c.prepareStatement("insert into t values(?, ?, ?)")) {
                for (int i = 0; i < 2000; i++) {
                    p.setInt(1, i);
                    p.setInt(2, i * 31 % 997);
                    p.setString(3, "row " + i);
                    p.executeUpdate();
                }
            }
            for (int i = 0; i < 20; i++) {
                try {
                    s.execute("select * from missing");
                } catch (SQLException e) {
                    ResultSet r = s.executeQuery("select x.a, count(*), max(y.b) from t x join t y on x.a = y.a group by x.a order by 2 desc");
                    while (r.next()) r.getString(3);
                }
            }
            return true;
        }
    }

    static int search() throws IOException {
        Analyzer analyzer = new Analyzer() {
            protected TokenStreamComponents createComponents(String field) {
                Tokenizer tokenizer = new StandardTokenizer();
                return new TokenStreamComponents(tokenizer, new LowerCaseFilter(tokenizer));
            }
        };
        ByteBuffersDirectory directory = new ByteBuffersDirectory();
        Random random = new Random(1);
        try (IndexWriter w = new IndexWriter(directory, new IndexWriterConfig(analyzer))) {
            for (int i = 0; i < 1000; i++) {
                StringBuilder b = new StringBuilder();
                for (int k = 0; k < 60; k++) b.append("Word").append(random.nextInt(1 + random.nextInt(5000))).append(' ');
                Document d = new Document();
                d.add(new TextField("t", b.toString(), Field.Store.YES));
                w.addDocument(d);
            }
        }
        try (DirectoryReader reader = DirectoryReader.open(directory)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            int n = 0;
            for (int i = 0; i < 100; i++) n += searcher.search(new FuzzyQuery(new Term("t", "word" + i * 7)), 10).scoreDocs.length;
            return n;
        }
    }

    static Callable<?> ruby() {
        ScriptingContainer container = new ScriptingContainer(LocalContextScope.CONCURRENT);
        return () -> container.runScriptlet("def fib(n) n < 2 ? n : fib(n - 1) + fib(n - 2) end\n"
            + "5000.times { |i| begin; raise ArgumentError, \"x#{i}\" if i % 7 == 0; rescue => e; e.message; end }\n"
            + "(1..3000).map { |i| i.to_s }.join(',').gsub(/[13579]/, '_').split('_').map(&:size).sort.uniq\n fib(18)");
    }

    static Callable<?> groovy() {
        groovy.lang.Script script = new groovy.lang.GroovyShell().parse("def fib(n) { n < 2 ? n : fib(n - 1) + fib(n - 2) }\n"
            + "(1..2000).each { try { if (it % 7 == 0) throw new RuntimeException('x' + it) } catch (e) { e.message } }\n"
            + "(1..2000).collect { it * 2 }.findAll { it % 3 == 0 }.sum() + fib(15)");
        return script::run;
    }

    static Callable<?> kotlin() throws IOException {
        Path source = Files.createTempFile("kindling-libraries", ".kt"), out = Files.createTempDirectory("kindling-libraries");
        StringBuilder b = new StringBuilder();
        for (int i = 0; i < 30; i++)
            b.append("class K" + i + "(val a: Int) { fun f(x: IntArray): Int { var s = 0; for (y in x) if (y > a) s += y * " + i + "; return s } }\n");
        Files.writeString(source, b);
        source.toFile().deleteOnExit();
        return () -> {
            ExitCode code = new K2JVMCompiler().exec(new PrintStream(OutputStream.nullOutputStream()), "-no-stdlib", "-no-reflect",
                "-cp", System.getProperty("java.class.path"), "-d", out.toString(), source.toString());
            if (code != ExitCode.OK) throw new IllegalStateException(code.toString());
            return code;
        };
    }

    static Callable<?> xml() {
        Processor processor = new Processor(false);
        StringBuilder b = new StringBuilder("<r>");
        for (int i = 0; i < 1000; i++) b.append("<i id='" + i + "'><n>name " + i + "</n><v>" + i * 7 % 101 + "</v></i>");
        String document = b.append("</r>").toString();
        return () -> {
            XQueryEvaluator query = processor.newXQueryCompiler().compile("for $i in //i where $i/v > 50 order by xs:integer($i/v), $i/@id "
                + "return <x>{replace($i/n, '[aeiou]', '_')}</x>").load();
            query.setContextItem(processor.newDocumentBuilder().build(new StreamSource(new StringReader(document))));
            StringWriter out = new StringWriter();
            query.run(processor.newSerializer(out));
            return out;
        };
    }

    static Callable<?> work(String name) throws Exception {
        switch (name) {
            case "json": return json();
            case "sql": return Libraries::sql;
            case "search": return Libraries::search;
            case "ruby": return ruby();
            case "groovy": return groovy();
            case "kotlin": return kotlin();
            default: return xml();
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 2; i++) {
            Callable<?> work = work(args[0]);
            Thread thread = new Thread(() -> {
                try {
                    for (;;) {
                        work.call();
                        if (runs.incrementAndGet() == 1) System.out.println("READY");
                    }
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        while (System.in.read() >= 0);
        System.exit(0);
    }
}
