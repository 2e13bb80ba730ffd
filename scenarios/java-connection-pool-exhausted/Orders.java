package com.shop;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import stage.Stage;

/** Two clerks have a connection to the database each, and sleep; four others want one. */
public final class Orders {
    private final HikariDataSource pool;

    private Orders(HikariDataSource pool) {
        this.pool = pool;
    }

    int find() {
        try (Connection connection = pool.getConnection(); Statement statement = connection.createStatement();
             ResultSet answer = statement.executeQuery("select 7")) {
            answer.next();
            return answer.getInt(1);
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    void report() {
        try (Connection connection = pool.getConnection()) {
            connection.setAutoCommit(false);
            Stage.rest();
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] words) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(words[0]);
        config.setUsername("postgres");
        config.setMaximumPoolSize(Integer.parseInt(words[1]));
        config.setConnectionTimeout(120_000);
        Orders orders = new Orders(new HikariDataSource(config));
        List<Thread> all = new ArrayList<>();
        for (int clerk = 1; clerk <= 2; clerk++) {
            all.add(Stage.start("clerk-" + clerk, orders::report));
        }
        Stage.until(all, Thread.State.TIMED_WAITING);
        for (int till = 1; till <= 4; till++) {
            all.add(Stage.start("till-" + till, () -> {
                orders.find();
                Stage.rest();
            }));
        }
        Stage.until(all, Thread.State.TIMED_WAITING);
        Stage.ready();
        Stage.rest();
    }
}
