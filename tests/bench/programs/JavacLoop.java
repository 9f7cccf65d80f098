import java.io.File;
import java.io.OutputStream;
import java.nio.file.Files;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;

/** The JDK's compiler on one source file (the argument), in three threads, without end. */
public class JavacLoop {
    static void compile(JavaCompiler compiler, String source) {
        try {
            for (;;) {
                File directory = Files.createTempDirectory("kindling-javac").toFile();
                OutputStream none = OutputStream.nullOutputStream();
                compiler.run(null, none, none, "-d", directory.getPath(), source);
                for (File f : directory.listFiles()) f.delete();
                directory.delete();
            }
        } catch (Exception e) {
            e.printStackTrace();
        }
    }

    public static void main(String[] args) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        for (int i = 0; i < 3; i++) new Thread(() -> compile(compiler, args[0]), "javac-" + i).start();
        System.out.println("READY");
    }
}
