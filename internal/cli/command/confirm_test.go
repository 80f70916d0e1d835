package command

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestConfirm(t *testing.T) {
	tests := map[string]struct {
		input         string
		agreed, fails bool
		questions     int
	}{
		"y agrees":                       {"y\n", true, false, 1},
		"YES agrees":                     {"YES\n", true, false, 1},
		"no declines":                    {"no\n", false, false, 1},
		"another answer asks again":      {"maybe\nn\n", false, false, 2},
		"the end of the input is no yes": {"", false, true, 1},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			var asked strings.Builder
			program := &Program{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(test.input), ErrOut: &asked}}
			agreed, err := program.Confirm("Remove it?", "--force")
			if agreed != test.agreed || (err != nil) != test.fails || strings.Count(asked.String(), "Remove it? [y/n]: ") != test.questions {
				t.Errorf("agreed %t, error %v, asked %q", agreed, err, asked.String())
			}
		})
	}
}
