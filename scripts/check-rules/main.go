// Reads files of rules as Prometheus does: members, expressions, templates of labels and annotations. What does not fit is a line each, exit code 1.
package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	status := 0
	for _, file := range os.Args[1:] {
		_, faults := rulefmt.ParseFile(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
		for _, fault := range faults {
			fmt.Println(fault)
			status = 1
		}
	}
	os.Exit(status)
}
