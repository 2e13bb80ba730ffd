import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.spi.ToolProvider;
import stage.Stage;

/** Compiles so many sources with the JDK's own compiler, in this process: a program of the usual kind, with much code that is run often. */
public final class Build {
    private Build() {}

    public static void main(String[] words) throws IOException {
        Path folder = Path.of(words[0]);
        int count = Integer.parseInt(words[1]);
        List<String> arguments = new ArrayList<>(List.of("-d", folder.resolve("out").toString()));
        for (int i = 0; i < count; i++) {
            Path source = folder.resolve("Part" + i + ".java");
            Files.writeString(source, source(i));
            arguments.add(source.toString());
        }
        int status = ToolProvider.findFirst("javac").orElseThrow().run(System.out, System.err, arguments.toArray(String[]::new));
        Stage.truth(Stage.queued());
        System.exit(status);
    }

    private static String source(int number) {
        StringBuilder text = new StringBuilder("class Part" + number + " {\n");
        for (int i = 0; i < 20; i++) {
            text.append("    int turn").append(i).append("(int n) {\n        int sum = ").append(number).append(";\n");
            text.append("        for (int k = 0; k < n; k++) {\n            sum += n ^ k * ").append(i);
            text.append(";\n        }\n        return sum;\n    }\n");
        }
        return text.append("}\n").toString();
    }
}
