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
 * Words measures queries of words, ranked by BM25, in one thread of Lucene. Its arguments are a folder for the index, a file with the paths of
 * the documents and one with the queries, one per line, how often each query runs, and ways of asking: whether any of the words will do, and
 * the number of best documents to find. It prints one line for each way and query: the way, and the least time in nanoseconds.
 */
final class Words {
  public static void main(String[] args) throws Exception {
    MMapDirectory index = new MMapDirectory(Path.of(args[0]));
    Analyzer analyzer = new Analyzer() {
      @Override
      protected TokenStreamComponents createComponents(String field) {
        Tokenizer tokens = CharTokenizer.fromTokenCharPredicate(Words::inWord);
        TokenStream small = new LowerCaseFilter(tokens);
        return new TokenStreamComponents(tokens, small);
      }
    };
    FieldType frequencies = new FieldType();
    frequencies.setIndexOptions(IndexOptions.DOCS_AND_FREQS);
    try (IndexWriter writer = new IndexWriter(index, new IndexWriterConfig(analyzer))) {
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
      for (int i = 4; i < args.length; i += 2) {
        BooleanClause.Occur occur = Boolean.parseBoolean(args[i]) ? BooleanClause.Occur.SHOULD : BooleanClause.Occur.MUST;
        int best = Integer.parseInt(args[i + 1]);
        for (String query : queries) { // warm-up
          searcher.search(words(query, occur), best);
        }
        for (String query : queries) {
          long least = Long.MAX_VALUE;
          for (int n = 0; n < repeat; n++) {
            long start = System.nanoTime();
            searcher.search(words(query, occur), best);
            least = Math.min(least, System.nanoTime() - start);
          }
          System.out.println(args[i] + " " + best + " " + least);
        }
      }
    }
  }

  private static boolean inWord(int c) {
    return c < 128 && (Character.isLetterOrDigit(c) || c == '_');
  }

  private static BooleanQuery words(String query, BooleanClause.Occur occur) {
    BooleanQuery.Builder words = new BooleanQuery.Builder();
    for (String word : query.split(" ")) {
      words.add(new TermQuery(new Term("text", word)), occur);
    }
    return words.build();
  }
}
