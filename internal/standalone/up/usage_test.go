package up

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/console"
)

func TestUsageErrors(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":                  {[]string{"up", "--member", "3"}, "unknown flag: --member: see `karmada up --help`"},
		"a flag without a value":           {[]string{"up", "--members"}, "flag needs an argument: --members: see `karmada up --help`"},
		"an argument":                      {[]string{"up", "3"}, `unexpected argument "3": see ` + "`karmada up --help`"},
		"an invalid number":                {[]string{"up", "--members", "three"}, "--members three: must be a whole number"},
		"too many members":                 {[]string{"up", "--members", "21"}, "--members 21: must be between 0 and 20"},
		"a negative number":                {[]string{"up", "--members=-1"}, "--members -1: must be between 0 and 20"},
		"more pull members than members":   {[]string{"up", "--members", "1", "--pull-members", "2"}, "--pull-members 2"},
		"no nodes":                         {[]string{"up", "--nodes-per-member", "0"}, "--nodes-per-member 0: must be at least 1"},
		"an invalid bool":                  {[]string{"up", "--join=maybe"}, "--join maybe: must be true or false"},
		"an unknown component":             {[]string{"up", "--components", "scheduler"}, "scheduler"},
		"an unknown feature gate":          {[]string{"up", "--feature-gates", "Magic=true"}, "Magic"},
		"an invalid address":               {[]string{"up", "--bind-address", "localhost"}, `--bind-address "localhost": must be an IP address`},
		"an address of another machine":    {[]string{"up", "--bind-address", "192.0.2.1"}, "--bind-address 192.0.2.1: this machine has no such address"},
		"up without directory":             {[]string{"up", "--data-dir", ""}, "--data-dir is empty"},
		"down without directory":           {[]string{"down", "--purge", "--data-dir", ""}, "--data-dir is empty"},
		"status without directory":         {[]string{"status", "--data-dir", ""}, "--data-dir is empty"},
		"a restore without a file":         {[]string{"restore"}, "a backup file, --report or --confirm is required"},
		"report and confirm together":      {[]string{"restore", "--report", "--confirm"}, "--report and --confirm cannot be used together"},
		"a report with a file":             {[]string{"restore", "--report", "x.tar.gz"}, `take no backup file, but "x.tar.gz" is given`},
		"a file with a kubeconfig":         {[]string{"restore", "x.tar.gz", "--kubeconfig", "y"}, "--kubeconfig can be used with --report and --confirm only"},
		"two backup files":                 {[]string{"backup", "a", "b"}, `unexpected argument "b"`},
		"down with an argument":            {[]string{"down", "member1"}, `unexpected argument "member1"`},
		"a member without a name":          {[]string{"member", "run"}, "--name and --data-dir are required"},
		"a member with negative nodes":     {[]string{"member", "run", "--name", "a", "--data-dir", "DIR", "--nodes", "-1"}, "--nodes -1: must be 0 or more"},
		"certificates that expire at once": {[]string{"member", "run", "--name", "a", "--data-dir", "DIR", "--certificate-lifetime", "1ms"}, "--certificate-lifetime 1ms: must be at least"},
		"a removal of two members":         {[]string{"member", "remove", "a", "b"}, "found 2 arguments: set the name of one member"},
		"an invalid name of a new member":  {[]string{"member", "add", "A_b"}, `cluster name "A_b"`},
		"a reserved name of a new member":  {[]string{"member", "add", "karmada-apiserver"}, "names that begin with karmada are reserved"},
		"a region that is no label value":  {[]string{"member", "add", "a", "--region", "a b"}, `--region "a b"`},
		"failover without its gate":        {[]string{"up", "--failover", "--feature-gates", "Failover=false"}, "--failover: --feature-gates=Failover=false disables the gate Failover"},
		"an unknown flag of a component":   {[]string{"up", "--extra-config", "karmada-scheduler.speed=1"}, "unknown flag: --speed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			root := &cobra.Command{Use: "karmada", SilenceUsage: true, SilenceErrors: true}
			root.SetFlagErrorFunc(NewFlagError)
			root.AddCommand(Commands()...)
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			args := append([]string{}, test.args...)
			for i, arg := range args {
				if arg == "DIR" {
					args[i] = dir
				}
			}
			if command := args[0]; command != "member" && !strings.Contains(strings.Join(args, " "), "--data-dir") {
				args = append([]string{command, "--data-dir", dir}, args[1:]...)
			}
			root.SetArgs(args)
			err := root.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, test.want)
			}
			if ExitCode(err) != 2 {
				t.Errorf("the exit code is %d", ExitCode(err))
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("the data directory was created (%v)", err)
			}
		})
	}
}

func TestUnknownCommandSuggestsSimilar(t *testing.T) {
	root := &cobra.Command{Use: "karmada"}
	root.AddCommand(Commands()...)
	const advice = "\nSee 'karmada --help' for the available commands."
	for args, want := range map[string]string{
		"--v=2 upp":    `unknown command "upp" for "karmada"; did you mean up?` + advice,
		"start":        `unknown command "start" for "karmada"; did you mean up?` + advice,
		"stop --purge": `unknown command "stop" for "karmada"; did you mean down?` + advice,
		"frob --help":  `unknown command "frob" for "karmada"` + advice,
		"init":         `unknown command "init" for "karmada"` + advice,
	} {
		if err := console.ValidateCommand(root, strings.Fields(args)); err == nil || err.Error() != want || ExitCode(err) != 1 {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
