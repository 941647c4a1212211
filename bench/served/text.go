package served

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
)

// report writes everything: the machine, the losing rows, then the corpora.
func (r *runner) report(ctx context.Context, w io.Writer, started time.Time, m *measured) {
	fmt.Fprintf(w, "Trawl bench, served, %s, took %s\n\n", started.UTC().Format("2006-01-02 15:04:05 UTC"), time.Since(started).Round(time.Second))
	report.Host(ctx, w, r.cfg.Args)
	fmt.Fprintf(w, "  seed      %d, %d queries in a bucket, each asked %d times\n  trawl     %s\n  peer      %s\n",
		r.cfg.Seed, r.cfg.Queries, r.cfg.Repeat, peer.TrawlVersion(ctx, r.cfg.Trawl), peer.ZoektVersion(ctx, r.webserver))
	fmt.Fprintf(w, "\nLOSING ROWS: zoekt is better here; times are the caller's, geometric means over queries\n\n")
	m.losing(w)
	fmt.Fprintf(w, "\nFIGURES TO REACH, by the caller's clock\n\n")
	var figures report.Figures
	figures.Add(m.corpus.Label(), m.figures())
	figures.Write(w)
	fmt.Fprintf(w, "\n%s\n%s: %d repos, %d files, %s MB\n", strings.Repeat("=", 80), strings.ToUpper(m.corpus.Name), len(m.corpus.Repos), m.files, report.Megabytes(m.bytes))
	m.writePrepared(w)
	m.writeSets(w)
	for mode := range modes {
		m.writeTimes(w, mode)
	}
	m.writeLoads(w)
	m.writeMemory(w)
	m.writeCold(w, r.cfg.Cold, peer.ReadAhead(r.scratch))
	m.writeRanged(w, r.cfg.Ranged)
}

func (m *measured) writePrepared(w io.Writer) {
	fmt.Fprintf(w, "\nIndexing: trawl shard build and zoekt-index without ctags, each once for every repo, on the same folders; peak is that of the largest\n"+
		"process. Until served is the time of trawl up from the request until all can be searched, which includes cloning\n\n")
	var t report.Table
	t.Row("", "core-s", "MB/core-s", "peak MB", "index MB", "index/content", "until served s")
	for _, p := range m.prepared {
		row := []string{p.name, fmt.Sprintf("%.1f", p.CPU.Seconds()), fmt.Sprintf("%.1f", float64(m.bytes)/1e6/p.CPU.Seconds()), report.Megabytes(p.Peak),
			report.Megabytes(p.IndexBytes), fmt.Sprintf("%.3f", float64(p.IndexBytes)/float64(m.bytes)), ""}
		if p.served > 0 {
			row[6] = fmt.Sprintf("%.1f", p.served.Seconds())
		}
		t.Row(row...)
	}
	t.Write(w)
}

func (m *measured) writeSets(w io.Writer) {
	fmt.Fprintf(w, "\nResult sets, in queries and files; \"counted\" are too many files to list, but as many of them, and of matches\n\n")
	var t report.Table
	t.Row("", "same", "counted", "different", "late or failed", "only trawl", "only zoekt", "other matches", "files that one alone finds")
	for _, s := range m.sets {
		t.Row(string(s.bucket), fmt.Sprint(s.same), fmt.Sprint(s.counted), fmt.Sprint(s.different), fmt.Sprint(s.unanswered),
			fmt.Sprint(s.onlyTrawl), fmt.Sprint(s.onlyZoekt), fmt.Sprint(s.matches), s.why())
	}
	t.Write(w)
	for _, s := range m.sets {
		for _, e := range s.examples {
			fmt.Fprintf(w, "  e.g. %s\n", e)
		}
	}
}

// factor formats a ratio, with a sign if it is a bound.
func factor(value float64, list []ratio) string {
	least, most := false, false
	for _, r := range list {
		least, most = least || r.atLeast, most || r.atMost
	}
	sign := ""
	switch {
	case least && most:
		sign = "~"
	case least:
		sign = ">"
	case most:
		sign = "<"
	}
	if value < 0.1 {
		return fmt.Sprintf("%s%.2g", sign, value)
	}
	return fmt.Sprintf("%s%.2f", sign, value)
}

func (m *measured) writeTimes(w io.Writer, mode int) {
	fmt.Fprintf(w, "\nQueries one at a time, %s, ms by the caller's clock and by the server's; ratios are the peer's time by trawl's (below 1: the peer is faster)\n\n", modes[mode])
	var t report.Table
	t.Row("", "server", "p50", "p99", "own p50", "own p99", "ratio", "own ratio", "worst", "late", "failed")
	var hardest, failed [][2]string
	for i := range m.buckets[mode] {
		b := &m.buckets[mode][i]
		for k := range b.timings {
			x := &b.timings[k]
			row := []string{string(b.name), x.name, "-", "-", "-", "-", "", "", "", "", ""}
			if client, own := x.times(); len(client) > 0 {
				for n, times := range [][]time.Duration{client, own} {
					row[2+2*n], row[3+2*n] = report.Milliseconds(report.Percentile(times, 50)), report.Milliseconds(report.Percentile(times, 99))
				}
			}
			if list := x.ratios(&b.timings[0]); k > 0 && len(list) > 0 {
				client, own := means(list)
				bad := worst(list)
				row[6], row[7], row[8] = factor(client, list), factor(own, list), factor(bad.client, []ratio{bad})
				if x.name != topK { // it is not a peer
					hardest = append(hardest, [2]string{string(b.name) + ", " + x.name, fmt.Sprintf("%s: %s, %s against %s ms", b.queries[bad.query].Text(), row[8],
						report.Milliseconds(b.timings[0].queries[bad.query].client), report.Milliseconds(x.queries[bad.query].client))})
				}
			}
			if x.late > 0 {
				row[9] = fmt.Sprint(x.late)
			}
			if x.failed > 0 {
				row[10] = fmt.Sprint(x.failed)
				failed = append(failed, [2]string{string(b.name) + ", " + x.name, x.reason})
			}
			t.Row(row...)
		}
	}
	m.addMeans(&t, mode)
	t.Write(w)
	writeLines(w, "The worst query of each", hardest)
	writeLines(w, "The last failure of each that failed", failed)
}

// addMeans adds the rows of all queries.
func (m *measured) addMeans(t *report.Table, mode int) {
	for _, name := range []string{m.peerOf(mode), limited} {
		var all []ratio
		for i := range m.buckets[mode] {
			all = append(all, m.buckets[mode][i].against(name)...)
		}
		if len(all) > 0 {
			client, own := means(all)
			bad := worst(all)
			t.Row("all", name, "", "", "", "", factor(client, all), factor(own, all), factor(bad.client, []ratio{bad}))
		}
	}
}

// writeLines writes lines that do not fit into a table.
func writeLines(w io.Writer, title string, lines [][2]string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n\n", title)
	for _, line := range lines {
		fmt.Fprintf(w, "  %-40s %s\n", line[0], line[1])
	}
}

func (m *measured) writeLoads(w io.Writer) {
	if len(m.loads) == 0 {
		return
	}
	fmt.Fprintf(w, "\nMany clients, exhaustive, each asking its next query when it has an answer, over and over; q/core-s are answers for each second of\n"+
		"the server's processor time, core-ms that time for each answer; \"ratio\" is trawl's q/core-s by the peer's (below 1: the peer is better). All queries of a set are asked\n"+
		"equally often, unless it was cut off. A refused client waits 0.1 s and asks again, which counts as one query's time\n\n")
	var t report.Table
	t.Row("", "clients", "server", "answers", "p50 ms", "p99 ms", "q/s", "q/core-s", "core-ms", "ratio", "late", "refused", "")
	var refused [][2]string
	for i := range m.loads {
		l := &m.loads[i]
		row := []string{l.set, fmt.Sprint(l.clients), l.name, fmt.Sprint(len(l.times)), "-", "-", "-", "-", "-", "", "", "", ""}
		if n := float64(len(l.times)); n > 0 {
			row[4], row[5] = report.Milliseconds(report.Percentile(l.times, 50)), report.Milliseconds(report.Percentile(l.times, 99))
			row[6], row[7], row[8] = fmt.Sprintf("%.1f", n/l.wall.Seconds()), fmt.Sprintf("%.1f", l.rate()), fmt.Sprintf("%.2f", milliseconds(l.cpu)/n)
		}
		if own := m.loadOf(l.set, trawl, l.clients); l.name != trawl && own != nil && len(l.times) > 0 {
			row[9] = fmt.Sprintf("%.2f", own.rate()/l.rate())
		}
		if l.late > 0 {
			row[10] = fmt.Sprint(l.late)
		}
		if l.refused > 0 {
			row[11] = fmt.Sprint(l.refused)
			refused = append(refused, [2]string{fmt.Sprintf("%s, %s, %s", l.set, clientsText(l.clients), l.name), l.reason})
		}
		if l.cut {
			row[12] = "cut off"
		}
		t.Row(row...)
	}
	t.Write(w)
	writeLines(w, "The last refusal of each that refused", refused)
}

func clientsText(n int) string {
	if n == 1 {
		return "1 client"
	}
	return fmt.Sprintf("%d clients", n)
}

func (m *measured) loadOf(set, name string, clients int) *load {
	for i := range m.loads {
		if l := &m.loads[i]; l.set == set && l.name == name && l.clients == clients {
			return l
		}
	}
	return nil
}

func (m *measured) writeMemory(w io.Writer) {
	repos := float64(len(m.corpus.Repos))
	fmt.Fprintf(w, "\nMemory; RssAnon is the process's own, RssFile mapped files, which the system drops when it needs the room; heap is Go's after four\n"+
		"collections; a repo's share is the excess over the same server without a repo,\n"+
		"after the same queries. Trawl's process includes etcd, NATS and the indexer\n\n")
	var t report.Table
	t.Row("", "", "RssAnon MB", "RssFile MB", "heap MB", "maps", "RssAnon kB/repo", "RssFile kB/repo", "heap kB/repo")
	empty := map[string]memory{}
	for _, one := range m.memory {
		row := []string{one.server, one.when, report.Megabytes(one.Anon), report.Megabytes(one.File), report.Megabytes(one.Heap), fmt.Sprint(one.Maps)}
		if before, ok := empty[one.server]; ok {
			for _, more := range []int64{one.Anon - before.Anon, one.File - before.File, one.Heap - before.Heap} {
				row = append(row, fmt.Sprintf("%.1f", float64(more)/1e3/repos))
			}
		} else {
			empty[one.server] = one
		}
		t.Row(row...)
	}
	t.Write(w)
}

func (m *measured) writeCold(w io.Writer, rounds int, readAhead int64) {
	if len(m.cold) == 0 {
		return
	}
	fmt.Fprintf(w, "\nCold disk: first queries, one of each user, all at once, %d rounds. Before each round the server is stopped, its files are dropped from the page\n"+
		"cache (posix_fadvise, DONTNEED), it is started, and they are dropped again; reads until then are listed separately. Faults are major ones; where one\n"+
		"page is asked for, the disk reads up to %d kB\n\n", rounds, readAhead>>10)
	var t report.Table
	t.Row("", "users", "p50 ms", "p99 ms", "MB read/query", "faults/query", "ready ms", "MB read before", "late", "failed")
	var failed [][2]string
	for i := range m.cold {
		c := &m.cold[i]
		queries := float64(c.users * len(c.ready))
		t.Row(c.name, fmt.Sprint(c.users), report.Milliseconds(report.Percentile(c.times, 50)), report.Milliseconds(report.Percentile(c.times, 99)),
			fmt.Sprintf("%.2f", float64(c.used.ReadBytes)/1e6/queries), fmt.Sprintf("%.1f", float64(c.used.MajorFaults)/queries),
			report.Milliseconds(report.Percentile(c.ready, 50)), report.Megabytes(c.starting.ReadBytes/int64(len(c.ready))), fmt.Sprint(c.late), fmt.Sprint(c.failed))
		failed = append(failed, c.failure()...)
	}
	t.Write(w)
	writeLines(w, "The last failure of each that failed", failed)
}

func (m *measured) writeRanged(w io.Writer, rounds int) {
	if len(m.ranged) == 0 {
		return
	}
	fmt.Fprintf(w, "\nShards in S3: first queries of a searcher whose disk has room for a quarter of them, one of each user, all at once, %d rounds; the gateway\n"+
		"is versitygw on the same machine, over loopback, with its files dropped from the page cache\n\n", rounds)
	var t report.Table
	t.Row("", "users", "p50 ms", "p99 ms", "MB fetched/query", "requests/query", "late", "failed")
	var failed [][2]string
	for i := range m.ranged {
		r := &m.ranged[i]
		queries := float64(r.users * rounds)
		t.Row(r.name, fmt.Sprint(r.users), report.Milliseconds(report.Percentile(r.times, 50)), report.Milliseconds(report.Percentile(r.times, 99)),
			fmt.Sprintf("%.2f", float64(r.fetched)/1e6/queries), fmt.Sprintf("%.1f", float64(r.requests)/queries), fmt.Sprint(r.late), fmt.Sprint(r.failed))
		failed = append(failed, r.failure()...)
	}
	t.Write(w)
	writeLines(w, "The last failure of each that failed", failed)
}

// failure returns a line about the last failed query, if there is one.
func (c *cold) failure() [][2]string {
	if c.failed == 0 {
		return nil
	}
	return [][2]string{{c.name + ", " + usersText(c.users), c.reason}}
}
