package layout

import (
	"strings"
	"testing"
)

func TestRewriteMountPaths(t *testing.T) {
	m := newMounts(
		mount{"/etc/kubeconfig", "/pod/volumes/kubeconfig"}, mount{"/etc", "/pod/volumes/etc"},
		mount{"/etc/one/file.yaml", "/pod/volumes/one/a"}, mount{"/var/run/secrets/", "/pod/volumes/token"},
	)
	tests := map[string]struct{ text, want string }{
		"the mount path":                          {"/etc/kubeconfig", "/pod/volumes/kubeconfig"},
		"a file in a mount":                       {"/etc/kubeconfig/karmada", "/pod/volumes/kubeconfig/karmada"},
		"the value of a flag":                     {"--kubeconfig=/etc/kubeconfig/karmada", "--kubeconfig=/pod/volumes/kubeconfig/karmada"},
		"the longest mount":                       {"/etc/hosts", "/pod/volumes/etc/hosts"},
		"a mount that is a file":                  {"--config=/etc/one/file.yaml", "--config=/pod/volumes/one/a"},
		"a name that starts like a mounted file":  {"/etc/one/file.yaml.bak", "/pod/volumes/etc/one/file.yaml.bak"},
		"a list":                                  {"/etc/a,/etc/b:/etc/c", "/pod/volumes/etc/a,/pod/volumes/etc/b:/pod/volumes/etc/c"},
		"a quoted path":                           {`{"path":"/etc/a"}`, `{"path":"/pod/volumes/etc/a"}`},
		"a mount path with a trailing slash":      {"/var/run/secrets/token", "/pod/volumes/token/token"},
		"a name that starts like a mount":         {"/etcd/data", "/etcd/data"},
		"a path in another directory":             {"/usr/etc/a", "/usr/etc/a"},
		"part of a URL":                           {"https://host/etc/a", "https://host/etc/a"},
		"part of a URL without a host":            {"file:///etc/a", "file:///etc/a"},
		"a relative path":                         {"./etc/a", "./etc/a"},
		"no path":                                 {"--v=4", "--v=4"},
		"a name with a dash":                      {"/etc-backup", "/etc-backup"},
		"a rewritten path is not rewritten again": {"/etc /etc", "/pod/volumes/etc /pod/volumes/etc"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := m.rewrite(test.text); got != test.want {
				t.Errorf("%q becomes %q, want %q", test.text, got, test.want)
			}
		})
	}
}

func FuzzRewriteMountPaths(f *testing.F) {
	f.Add("--a=", "/x/y", "/z", "/file")
	f.Add("", "/etc", "/pod/etc", "")
	f.Fuzz(func(t *testing.T, before, path, source, rest string) {
		m, other := newMounts(mount{path, source}), func(r rune) bool { return r != '/' && (r >= 0x80 || !isNameByte(byte(r))) }
		rest = strings.TrimLeft(rest, "/")
		cleaned := m[0].path
		if cleaned != "/" && !strings.ContainsFunc(cleaned, other) && !strings.Contains(before+rest, "/") {
			text := before + cleaned + "/" + rest
			want := text
			if before == "" || !isNameByte(before[len(before)-1]) {
				want = before + source + "/" + rest
			}
			if got := m.rewrite(text); got != want {
				t.Errorf("%q with %q at %q becomes %q, want %q", text, source, cleaned, got, want)
			}
		}
		if text := strings.ReplaceAll(before+rest, "/", ""); m.rewrite(text) != text {
			t.Errorf("%q has no path and becomes %q", text, m.rewrite(text))
		}
	})
}
