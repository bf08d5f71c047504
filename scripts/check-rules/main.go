// Reads files of rules as Prometheus does: members, expressions, templates of labels and annotations. What does not fit is a line each, exit code 1.
// `check-rules --scrape METRICS FILE` prints the alerts of the file whose expression holds for what was scraped, a line each, in Prometheus' own engine.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == "--scrape" {
		if err := printFiring(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	status := 0
	for _, file := range os.Args[1:] {
		_, faults := parse(file)
		for _, fault := range faults {
			fmt.Println(fault)
			status = 1
		}
	}
	os.Exit(status)
}

func parse(file string) (*rulefmt.RuleGroups, []error) {
	return rulefmt.ParseFile(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
}

func printFiring(metrics, file string) error {
	groups, faults := parse(file)
	if len(faults) > 0 {
		return faults[0]
	}
	now := time.Now()
	scraped, err := scrapedSeries(metrics, now)
	if err != nil {
		return err
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			query, err := engine.NewInstantQuery(context.Background(), scraped, nil, rule.Expr, now)
			if err != nil {
				return err
			}
			found, err := query.Exec(context.Background()).Vector()
			if err != nil {
				return err
			}
			if len(found) > 0 {
				fmt.Println(rule.Alert)
			}
		}
	}
	return nil
}

// scraped is a scrape as the only sample of each series.
type scraped []storage.Series

func (s scraped) Querier(_, _ int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := []storage.Series{}
	next:
		for _, series := range s {
			for _, matcher := range matchers {
				if !matcher.Matches(series.Labels().Get(matcher.Name)) {
					continue next
				}
			}
			found = append(found, series)
		}
		return &seriesSet{found, -1}
	}}, nil
}

type seriesSet struct {
	series []storage.Series
	at     int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series                { return s.series[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

type sample struct {
	atMs  int64
	value float64
}

func (s sample) T() int64                      { return s.atMs }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// scrapedSeries reads Prometheus' text format.
func scrapedSeries(file string, now time.Time) (scraped, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	symbols := labels.NewSymbolTable()
	metrics := textparse.NewPromParser(text, symbols, false)
	found := scraped{}
	for {
		entry, err := metrics.Next()
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var names labels.Labels
		metrics.Labels(&names)
		_, _, value := metrics.Series()
		found = append(found, storage.NewListSeries(names, []chunks.Sample{sample{now.UnixMilli(), value}}))
	}
}
