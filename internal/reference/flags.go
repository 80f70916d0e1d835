package reference

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"karmada.io/karmada/internal/cli"
	clicommand "karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/components"
	"karmada.io/karmada/internal/programs/flags"
)

func flagPages() []Page {
	var pages []Page
	for _, program := range components.Programs() {
		set := command.New(program).Flags()
		introduction := fmt.Sprintf("`%s` %s. This page lists its flags.", program.Name, program.Help)
		if set.Lookup("feature-gates") != nil {
			introduction += " [Feature gates](../gates.md) lists the values of `--feature-gates`."
		}
		text := newMarkdown(program.Name, introduction)
		addFlags(text, set)
		pages = append(pages, newFlagsPage(program.Name, text))
	}
	return append(pages, CommandsPage(cli.New(&clicommand.Program{
		Name: cli.Karmadactl, IOStreams: genericiooptions.NewTestIOStreamsDiscard(),
	}), "`karmadactl` and `kubectl karmada` are the same program. [karmadactl](../../karmadactl.md) explains the commands."))
}

func newFlagsPage(program string, text *markdown) Page {
	return newPage(path.Join("flags", program+".md"), text)
}

// CommandsPage returns the page of a program that has subcommands. introduction is Markdown text.
func CommandsPage(root *cobra.Command, introduction string) Page {
	text := newMarkdown(root.Name(), introduction)
	if flags := ownFlags(root); flags.HasAvailableFlags() {
		text.addSection("Flags of all commands", "")
		addFlags(text, flags)
	}
	addCommands(text, root)
	return newFlagsPage(root.Name(), text)
}

// addCommands adds a section for each subcommand of a command.
func addCommands(text *markdown, parent *cobra.Command) {
	children := slices.Clone(parent.Commands())
	slices.SortFunc(children, func(a, b *cobra.Command) int { return strings.Compare(a.Name(), b.Name()) })
	for _, child := range children {
		if child.Hidden || child.Name() == "help" {
			continue
		}
		text.addSection(child.CommandPath(), sentence(child.Short))
		if child.Runnable() {
			text.addParagraph("Usage: " + code(child.UseLine()))
		}
		if flags := ownFlags(child); flags.HasAvailableFlags() {
			addFlags(text, flags)
		}
		addCommands(text, child)
	}
}

// ownFlags returns the flags that a command defines itself.
func ownFlags(cmd *cobra.Command) *pflag.FlagSet {
	own := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	own.AddFlagSet(cmd.PersistentFlags())
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if own.Lookup(flag.Name) == nil && (cmd.Parent() == nil || cmd.InheritedFlags().Lookup(flag.Name) == nil) {
			own.AddFlag(flag)
		}
	})
	return own
}

func addFlags(text *markdown, set *pflag.FlagSet) {
	var rows [][]string
	set.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || flag.Name == "help" {
			return
		}
		effect := ""
		if !flags.HasEffect(flag) {
			effect = "none"
		}
		rows = append(rows, []string{code(flagName(flag)), flag.Value.Type(), code(defaultValue(flag)), cell(flagHelp(flag)), effect})
	})
	text.addTable([]string{"flag", "type", "default", "meaning", "effect"}, rows)
}

func flagName(flag *pflag.Flag) string {
	if flag.Shorthand != "" && flag.ShorthandDeprecated == "" {
		return "-" + flag.Shorthand + ", --" + flag.Name
	}
	return "--" + flag.Name
}

func flagHelp(flag *pflag.Flag) string {
	help, _, _ := strings.Cut(flag.Usage, "\n\n")
	if flag.Name == "feature-gates" {
		help = "Feature gates to enable or disable, as a comma-separated list of name=true or name=false."
	}
	help = strings.ReplaceAll(help, "`", "")
	if flag.Deprecated != "" {
		help = "Deprecated: " + flag.Deprecated + ". " + help
	}
	return sentence(help)
}

// defaultValue returns the default of a flag, or an empty string if the default is empty. It
// replaces the home directory of the user with $HOME.
func defaultValue(flag *pflag.Flag) string {
	value := flag.DefValue
	if home, err := os.UserHomeDir(); err == nil && len(home) > 1 {
		value = strings.ReplaceAll(value, home, "$HOME")
	}
	switch value {
	case "[]", "<nil>":
		return ""
	}
	return value
}
