package up

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karmada.io/karmada/internal/console"
)

func TestScreenShowsSteps(t *testing.T) {
	step := func(name string) string { return fmt.Sprintf("%-49s", name) }
	tests := map[string]struct {
		style console.Style
		want  string
	}{
		"off a terminal": {want: "✔ " + step("etcd") + "    4.4s\nadvice\n✖ " + step("members") + "    1.0s\n"},
		"on a terminal without colours": {style: console.NewTerminalStyle(false), want: "" +
			"⠋ etcd" + "\r\033[K⠋ etcd, members" + "\r\033[K✔ " + step("etcd") + "    4.4s\n⠋ members" +
			"\r\033[K⠙ members" + "\r\033[Kadvice\n⠙ members" + "\r\033[K✖ " + step("members") + "    1.0s\n"},
		"on a terminal": {style: console.NewTerminalStyle(true), want: "" +
			"⠋ etcd" + "\r\033[K⠋ etcd, members" + "\r\033[K\033[32m✔\033[0m " + step("etcd") + "    4.4s\n⠋ members" +
			"\r\033[K⠙ members" + "\r\033[Kadvice\n⠙ members" + "\r\033[K\033[31m✖\033[0m " + step("members") + "    1.0s\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := &screen{out: &out, style: test.style, animated: true}
			s.show(event{Step: "etcd", Begin: true})
			s.show(event{Step: "members", Begin: true})
			s.show(event{Step: "etcd", Seconds: 4.4})
			s.advance()
			s.show(event{Text: "advice"})
			s.show(event{Step: "members", Seconds: 1, Error: "refused"})
			s.end()
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
