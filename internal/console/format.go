package console

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Formats of output apart from the table that people read, which is "".
const (
	Wide = "wide"
	Name = "name"
	JSON = "json"
	YAML = "yaml"
)

var formats = []string{JSON, YAML, Name, Wide}

// Format is the value of a flag --output.
type Format string

// AddFlag adds the flag to a command.
func (f *Format) AddFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(f, "output", "o", "format of the output: "+strings.Join(formats, ", ")+"; a table if empty")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the format.
func (f *Format) String() string { return string(*f) }

// Type returns the name of the type in help.
func (f *Format) Type() string { return "string" }

// Set accepts one of the formats.
func (f *Format) Set(text string) error {
	if text != "" && !slices.Contains(formats, text) {
		return fmt.Errorf("unsupported format %q: use %s", text, strings.Join(formats, ", "))
	}
	*f = Format(text)
	return nil
}

// Output is one answer in all formats.
type Output struct {
	// Header and Rows are the table. Columns from Narrow on are part of wide only; 0
	// means that there are none of these.
	Header []string
	Rows   [][]string
	Narrow int
	// Names are what --output=name prints, one a line.
	Names []string
	// Object is what JSON and YAML print.
	Object any
	// Gap is the number of blanks between columns.
	Gap int
}

// Print writes the answer in one format.
func (f *Format) Print(out io.Writer, answer Output) error {
	switch *f {
	case JSON:
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "    ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(answer.Object)
	case YAML:
		text, err := yaml.Marshal(answer.Object)
		if err != nil {
			return fmt.Errorf("encoding YAML: %w", err)
		}
		_, err = out.Write(text)
		return err
	case Name:
		for _, name := range answer.Names {
			if _, err := fmt.Fprintln(out, name); err != nil {
				return err
			}
		}
		return nil
	}
	return answer.printTable(out, *f == Wide)
}

// Table reports whether people read the output.
func (f *Format) Table() bool { return *f == "" || *f == Wide }

func (o Output) printTable(out io.Writer, wide bool) error {
	table := tabwriter.NewWriter(out, 0, 0, o.Gap, ' ', 0)
	for _, row := range append([][]string{o.Header}, o.Rows...) {
		if !wide && o.Narrow > 0 {
			row = row[:o.Narrow]
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}
