import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.concurrent.ThreadLocalRandom;

/** H2 in memory: inserts, joins, aggregates and deletes in three threads, or as many as the
 * argument says, without end. */
public class DatabaseLoop {
    static void work() {
        try (Connection c = DriverManager.getConnection("jdbc:h2:mem:bench;DB_CLOSE_DELAY=-1")) {
            ThreadLocalRandom random = ThreadLocalRandom.current();
            for (;;) {
                try (PreparedStatement s = c.prepareStatement("insert into item(kind, price, name) values(?, ?, ?)")) {
                    for (int i = 0; i < 200; i++) {
                        s.setInt(1, random.nextInt(50));
                        s.setDouble(2, random.nextDouble());
                        s.setString(3, "item " + random.nextInt(100000));
                        s.addBatch();
                    }
                    s.executeBatch();
                }
                try (PreparedStatement s = c.prepareStatement("select a.kind, count(*), sum(a.price), max(b.name) from item a "
                        + "join item b on a.kind = b.kind where a.id < ? and b.name like ? group by a.kind order by 2")) {
                    s.setInt(1, 300);
                    s.setString(2, "item 1%");
                    try (ResultSet r = s.executeQuery()) {
                        while (r.next()) r.getString(4);
                    }
                }
                try (PreparedStatement s = c.prepareStatement("delete from item where id > 300 and kind = ?")) {
                    s.setInt(1, random.nextInt(50));
                    s.executeUpdate();
                }
            }
        } catch (Exception e) {
            e.printStackTrace();
        }
    }

    public static void main(String[] args) throws Exception {
        try (Connection c = DriverManager.getConnection("jdbc:h2:mem:bench;DB_CLOSE_DELAY=-1")) {
            c.createStatement().execute("create table item(id identity primary key, kind int, price double, name varchar)");
        }
        int threads = args.length > 0 ? Integer.parseInt(args[0]) : 3;
        for (int i = 0; i < threads; i++) new Thread(DatabaseLoop::work, "sql-" + i).start();
        System.out.println("READY");
    }
}
