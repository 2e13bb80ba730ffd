import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;

/** Full text search over a corpus split into segments. */
public final class SearchService {
    static final class Segment {
        private final int id;
        private final Map<String, List<Integer>> postings = new TreeMap<>();

        Segment(int id) {
            this.id = id;
            String[] vocabulary = {"river", "bridge", "mill", "harbour", "tower", "gate", "market"};
            for (int doc = 0; doc < 400; doc++) {
                String w = vocabulary[(doc * 7 + id * 3) % vocabulary.length];
                postings.computeIfAbsent(w, k -> new ArrayList<>()).add(id * 1000 + doc);
            }
        }

        List<Integer> lookup(String term) {
            return postings.getOrDefault(term, List.of());
        }
    }

    private final List<Segment> segments = new ArrayList<>();
    private final ExecutorService searchPool;
    private final Map<String, Integer> resultCache = new ConcurrentHashMap<>();
    private final AtomicInteger answered = new AtomicInteger();

    SearchService(int threads, int segmentCount) {
        for (int i = 0; i < segmentCount; i++) {
            segments.add(new Segment(i));
        }
        searchPool = Executors.newFixedThreadPool(threads, named("search"));
    }

    private static ThreadFactory named(String prefix) {
        AtomicInteger n = new AtomicInteger();
        return r -> new Thread(r, prefix + "-" + n.incrementAndGet());
    }

    CompletableFuture<Integer> submit(String term) {
        Integer known = resultCache.get(term);
        if (known != null) {
            return CompletableFuture.completedFuture(known);
        }
        return CompletableFuture.supplyAsync(() -> evaluate(term), searchPool);
    }

    private int evaluate(String term) {
        List<Integer> hits = collectHits(term);
        hits.sort(Integer::compare);
        resultCache.put(term, hits.size());
        answered.incrementAndGet();
        return hits.size();
    }

    private List<Integer> collectHits(String term) {
        List<CompletableFuture<List<Integer>>> parts = new ArrayList<>();
        for (Segment s : segments) {
            parts.add(CompletableFuture.supplyAsync(() -> s.lookup(term), searchPool));
        }
        List<Integer> all = new ArrayList<>();
        for (CompletableFuture<List<Integer>> p : parts) {
            all.addAll(p.join());
        }
        return all;
    }

    public static void main(String[] args) throws Exception {
        SearchService service = new SearchService(4, 8);
        String[] terms = {"river", "bridge", "mill", "harbour", "tower", "gate", "market"};
        service.submit("warmup").join();
        System.out.println("index ready");
        int n = 0;
        while (true) {
            for (int burst = 0; burst < 6; burst++) {
                String term = terms[n++ % terms.length] + (n > 14 ? n : "");
                service.submit(term).thenAccept(h -> System.out.println(term + ": " + h));
            }
            Thread.sleep(700);
            System.out.println("answered so far " + service.answered.get());
        }
    }
}
