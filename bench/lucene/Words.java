import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.LowerCaseFilter;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.util.CharTokenizer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.MMapDirectory;

/**
 * Words measures conjunctions of words, ranked by BM25, in one thread of Lucene. Its arguments are a folder for the index, a file with the paths of
 * the documents and one with the queries, one per line, how often each query runs, and the numbers of best documents to find. It prints one line for
 * each query and number: the number, the least time in nanoseconds, and how many documents are known to match.
 */
final class Words {
  public static void main(String[] args) throws Exception {
    MMapDirectory index = new MMapDirectory(Path.of(args[0]));
    Analyzer words = new Analyzer() {
      @Override
      protected TokenStreamComponents createComponents(String field) {
        Tokenizer tokens = CharTokenizer.fromTokenCharPredicate(Words::inWord);
        TokenStream small = new LowerCaseFilter(tokens);
        return new TokenStreamComponents(tokens, small);
      }
    };
    FieldType frequencies = new FieldType();
    frequencies.setIndexOptions(IndexOptions.DOCS_AND_FREQS);
    try (IndexWriter writer = new IndexWriter(index, new IndexWriterConfig(words))) {
      for (String path : Files.readAllLines(Path.of(args[1]))) {
        Document document = new Document();
        document.add(new Field("text", new String(Files.readAllBytes(Path.of(path)), StandardCharsets.ISO_8859_1), frequencies));
        writer.addDocument(document);
      }
      writer.forceMerge(1);
    }
    List<String> queries = Files.readAllLines(Path.of(args[2]));
    int repeat = Integer.parseInt(args[3]);
    try (DirectoryReader reader = DirectoryReader.open(index)) {
      IndexSearcher searcher = new IndexSearcher(reader);
      searcher.setQueryCache(null);
      for (int i = 4; i < args.length; i++) {
        int best = Integer.parseInt(args[i]);
        for (String query : queries) { // warm-up
          searcher.search(conjunction(query), best);
        }
        for (String query : queries) {
          long least = Long.MAX_VALUE;
          long matched = 0;
          for (int n = 0; n < repeat; n++) {
            long start = System.nanoTime();
            matched = searcher.search(conjunction(query), best).totalHits.value;
            least = Math.min(least, System.nanoTime() - start);
          }
          System.out.println(best + " " + least + " " + matched);
        }
      }
    }
  }

  private static boolean inWord(int c) {
    return c < 128 && (Character.isLetterOrDigit(c) || c == '_');
  }

  private static BooleanQuery conjunction(String query) {
    BooleanQuery.Builder all = new BooleanQuery.Builder();
    for (String word : query.split(" ")) {
      all.add(new TermQuery(new Term("text", word)), BooleanClause.Occur.MUST);
    }
    return all.build();
  }
}
