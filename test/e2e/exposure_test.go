package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/api/crds"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// checkFilePermissions checks that other users of the machine cannot access the files of an
// installation.
func (i *installation) checkFilePermissions(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(i.dir, func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // deleted in the meantime
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return nil //nolint:nilerr // deleted in the meantime
		}
		name := strings.TrimPrefix(path, i.dir)
		mode := info.Mode().Perm()
		private := entry.IsDir() || slices.Contains([]string{".key", ".json", ".config", ".kubeconfig", ".yaml", ".log"}, filepath.Ext(name))
		if private && mode&0o077 != 0 && !strings.Contains(name, "/programs/pods/") || mode&0o022 != 0 && info.Mode().Type() != fs.ModeSocket {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// openSockets returns the targets of the file descriptors of the installation's processes that are
// sockets, such as socket:[4711].
func (i *installation) openSockets(t *testing.T) map[string]bool {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range commands {
		if line, err := os.ReadFile(file); err != nil || !bytes.Contains(line, []byte(i.dir)) {
			continue
		}
		open, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "fd", "*"))
		for _, descriptor := range open {
			if target, err := os.Readlink(descriptor); err == nil && strings.HasPrefix(target, "socket:") {
				found[target] = true
			}
		}
	}
	return found
}

// listenAddresses returns the addresses on which the processes of an installation listen.
func (i *installation) listenAddresses(t *testing.T) []string {
	t.Helper()
	own := i.openSockets(t)
	var found []string
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		const local, state, inode, listening = 1, 3, 9, "0A"
		for _, fields := range socketTable(t, file) {
			if len(fields) > inode && fields[state] == listening && own["socket:["+fields[inode]+"]"] {
				found = append(found, parseSocketAddress(t, fields[local]))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// unixSockets returns the paths of the unix sockets on which the processes of an installation listen.
// The path of an abstract socket, which has no file permissions, begins with @.
func (i *installation) unixSockets(t *testing.T) []string {
	t.Helper()
	own := i.openSockets(t)
	var found []string
	const flags, inode, path, listening = 3, 6, 7, "00010000"
	for _, fields := range socketTable(t, "/proc/net/unix") {
		if len(fields) > inode && fields[flags] == listening && own["socket:["+fields[inode]+"]"] {
			found = append(found, strings.Join(fields[path:], " "))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// socketTable returns the lines of a kernel socket table, split into fields.
func socketTable(t *testing.T, file string) [][]string {
	t.Helper()
	table, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]string
	for line := range strings.Lines(string(table)) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

// parseSocketAddress parses an address of /proc/net/tcp: hexadecimal words in the byte
// order of the machine.
func parseSocketAddress(t *testing.T, text string) string {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	const word = 4
	for at := 0; at+word <= len(raw); at += word {
		slices.Reverse(raw[at : at+word])
	}
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(net.IP(raw).String(), strconv.FormatUint(number, 10))
}

// clusterInfoPath is the path of the ConfigMap that clusters read when they register. It
// holds the address of the control plane and its certificate authority.
const clusterInfoPath = "/api/v1/namespaces/kube-public/configmaps/cluster-info"

// anonymousPaths are served without credentials: health, version, and the ConfigMap of
// clusterInfoPath.
var anonymousPaths = []string{"/healthz", "/livez", "/readyz", "/version", clusterInfoPath}

// TestListenersRejectAnonymousRequests sends requests without credentials to every address
// on which a process of an installation listens. It is not parallel, because other tests run Pods in
// members, and the manifests of the Pods decide what they serve.
func TestListenersRejectAnonymousRequests(t *testing.T) {
	shared.checkFilePermissions(t)
	listeners := shared.listenAddresses(t)
	if len(listeners) < 4 {
		t.Fatalf("found only %q: the search for listeners is incomplete", listeners)
	}
	anonymous := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}, // an anonymous client needs no verification
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	var clusterInfoPorts, conversionPorts int
	for _, address := range listeners {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		if ip := net.ParseIP(host); !ip.IsLoopback() {
			t.Errorf("%s can be reached from other machines", address)
		}
		for _, scheme := range []string{"http", "https"} {
			for _, path := range append([]string{
				"/", "/metrics", "/debug/pprof/", "/debug/pprof/heap", "/configz", "/flagz", "/statusz", "/api/v1/secrets", "/apis", "/openapi/v2", "/logs",
				"/apis/cluster.karmada.io/v1alpha1/clusters", "/api/v1/namespaces/kube-public/configmaps", "/pods", "/exec/default/a/b", "/containerLogs/default/a/b", "/v2/keys", "/v3/kv/range",
			}, anonymousPaths...) {
				code := requestStatus(t, anonymous, http.MethodGet, scheme+"://"+address+path, "")
				switch {
				case code == 0, code >= http.StatusBadRequest:
				case path == clusterInfoPath:
					clusterInfoPorts++
				case slices.Contains(anonymousPaths, path):
				default:
					t.Errorf("%s://%s%s responds to an anonymous request with %d", scheme, address, path, code)
				}
			}
			conversionPorts += countConversions(t, anonymous, scheme+"://"+address)
		}
	}
	if clusterInfoPorts != 1 || conversionPorts != 1 {
		t.Errorf("%d ports serve %s and %d ports convert, want one of each: the ports of the control plane", clusterInfoPorts, clusterInfoPath, conversionPorts)
	}
}

// TestUnixSocketsRejectOtherUsers connects to every unix socket of an installation as another user of
// the machine, and as its owner without a certificate or a token.
func TestUnixSocketsRejectOtherUsers(t *testing.T) {
	// The socket for changes of members closes connections that send no token.
	changes := filepath.Join(shared.dir, "changes.sock")
	want := []string{changes, filepath.Join(shared.dir, "control-plane", "etcd", "etcd.sock")}
	for member := range shared.members {
		want = append(want, filepath.Join(shared.dir, "members", member, "etcd", "etcd.sock"))
	}
	slices.Sort(want)
	sockets := shared.unixSockets(t)
	if diff := cmp.Diff(want, sockets); diff != "" {
		t.Errorf("unix sockets (-want +got):\n%s", diff)
	}
	for _, socket := range sockets {
		err := connectWithoutCertificate(t.Context(), socket)
		isClosed := socket == changes && (errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET))
		if err == nil || !isClosed && !strings.Contains(err.Error(), "certificate required") {
			t.Errorf("a connection to %s without a certificate ended with %v", socket, err)
		}
		if os.Getuid() != 0 {
			continue // Only root can act as another user.
		}
		if err := os.Chmod(socket, 0o777); err != nil { // the directory must be sufficient
			t.Error(err)
		}
		if err := connectAsUser(nobodyUID, socket); !errors.Is(err, os.ErrPermission) {
			t.Errorf("the connection of user %d to %s ended with %v", nobodyUID, socket, err)
		}
	}
}

// connectWithoutCertificate opens a TLS connection to a unix socket and reads from it.
func connectWithoutCertificate(ctx context.Context, socket string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(socketTimeout)); err != nil {
		return err
	}
	_, err = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Read(make([]byte, 1)) // an attacker accepts any server
	return err
}

const (
	// nobodyUID is the user ID of nobody, who owns no files.
	nobodyUID = 65534
	// socketTimeout limits how long a connection to a unix socket may take.
	socketTimeout = 10 * time.Second
)

// connectAsUser connects to a unix socket with the permissions of another user.
func connectAsUser(user int, socket string) error {
	result := make(chan error, 1)
	go func() {
		// Linux has a user for each thread. The thread is never unlocked, so it ends with the
		// goroutine, and no other code runs as this user.
		runtime.LockOSThread()
		for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			if _, _, errno := unix.RawSyscall(call, uintptr(user), uintptr(user), uintptr(user)); errno != 0 {
				result <- errno
				return
			}
		}
		conn, err := net.DialTimeout("unix", socket, socketTimeout)
		if err == nil {
			err = conn.Close()
		}
		result <- err
	}()
	return <-result
}

// countConversions sends reviews as an API server sends them to webhooks, and returns the
// number of successful conversions. An admission review must not succeed, because admission
// runs inside the API server.
func countConversions(t *testing.T, anonymous *http.Client, server string) (conversions int) {
	t.Helper()
	const conversion = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"a","desiredAPIVersion":"work.karmada.io/v1alpha2","objects":[]}}`
	const admission = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"a","operation":"DELETE"}}`
	if code := requestStatus(t, anonymous, http.MethodPost, server+crds.ConversionPath, conversion); code == http.StatusOK {
		conversions++
	}
	for _, path := range []string{"/mutate-work", "/validate-propagationpolicy", "/validate-resourcedeletionprotection", "/validate-agentquota"} {
		if code := requestStatus(t, anonymous, http.MethodPost, server+path, admission); code != 0 && code < http.StatusBadRequest {
			t.Errorf("POST %s%s returned %d", server, path, code)
		}
	}
	return conversions
}

// requestStatus returns the status code of the response, or 0 without a response.
func requestStatus(t *testing.T, anonymous *http.Client, method, url, body string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := anonymous.Do(request)
	if err != nil {
		return 0
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode
}

// TestPodKubeconfigCannotAccessHost acts as a user who can create Secrets and Pods in a
// member. The program of the Pod gets kubeconfigs that name a command or the key of the
// control plane.
func TestPodKubeconfigCannotAccessHost(t *testing.T) {
	t.Parallel()
	markerFile, key := filepath.Join(t.TempDir(), "mark"), filepath.Join(shared.dir, "control-plane", "pki", "karmada.key")
	if _, err := os.Stat(key); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", shared.memberKubeconfig(t, spareMember))
	if err != nil {
		t.Fatal(err)
	}
	member, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, user := range map[string]string{
		"command":   `exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: /usr/bin/touch, args: ["` + markerFile + `"]}`,
		"key":       `client-certificate: "` + strings.TrimSuffix(key, ".key") + `.crt", client-key: "` + key + `"`,
		"tokenfile": `tokenFile: "` + key + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			kubeconfig := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], ` +
				`clusters: [{name: c, cluster: {server: "` + config.Host + `", insecure-skip-tls-verify: true}}], users: [{name: u, user: {` + user + `}}]}`
			secret := &corev1.Secret{ObjectMeta: objectMeta("default", "evil-"+name), StringData: map[string]string{"config": kubeconfig}}
			pod := &corev1.Pod{ObjectMeta: objectMeta("default", "evil-"+name), Spec: corev1.PodSpec{
				Containers: []corev1.Container{{
					Name: "evil", Image: "karmada-scheduler", Args: []string{"--kubeconfig=/etc/evil/config", "--leader-elect=false"},
					VolumeMounts: []corev1.VolumeMount{{Name: "evil", MountPath: "/etc/evil"}},
				}},
				Volumes: []corev1.Volume{{Name: "evil", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret.Name}}}},
			}}
			for _, object := range []client.Object{secret, pod} {
				if err := shared.members[spareMember].Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = shared.members[spareMember].Delete(context.WithoutCancel(t.Context()), object) })
			}
			eventually(t, "the permission error in the log", func(ctx context.Context) error {
				log, err := member.CoreV1().Pods("default").GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
				if err == nil && !bytes.Contains(log, []byte("permission denied")) {
					err = fmt.Errorf("the log is\n%s", log)
				}
				return err
			})
			if _, err := os.Stat(markerFile); !os.IsNotExist(err) {
				t.Errorf("the command ran (%v)", err)
			}
		})
	}
}

// TestPurgeRemovesCredentials joins a cluster that does not belong to the installation, and
// purges the installation. Before the purge, it checks that the files of the installation
// do not contain the credentials of the cluster.
func TestPurgeRemovesCredentials(t *testing.T) {
	const far, sentinel = "far", "sentinel-that-must-not-be-on-the-disk"
	i := &installation{dir: filepath.Join(t.TempDir(), "purged")}
	t.Cleanup(func() {
		runProgram(context.Background(), nil, "karmada", "down", "--purge", "--force", "--data-dir", i.dir)
	})
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := i.up(ctx, "--members", "0", "--audit-log"); err != nil {
		t.Fatal(err)
	}
	i.karmadactl(ctx, "join", far, "--cluster-kubeconfig", shared.memberKubeconfig(t, member2)).mustSucceed(t)
	purge := func(args ...string) commandResult {
		return runProgram(ctx, nil, "karmada", append([]string{"down", "--purge", "--data-dir", i.dir}, args...)...)
	}
	purge().mustFail(t, 1, "far (push)")
	runProgram(ctx, nil, "karmada", "status", "--data-dir", i.dir).mustSucceed(t)
	i.checkFilePermissions(t)
	i.propagateSecret(t, far, sentinel)
	i.checkNoSecretsOnDisk(t, sentinel)

	runProgram(ctx, nil, "karmada", "down", "--data-dir", i.dir).mustSucceed(t)
	rejected := purge()
	const placeholder = "MEMBER_KUBECONFIG"
	rejected.mustFail(t, 1, "`karmadactl unjoin far --cluster-kubeconfig="+placeholder+"`")
	if err := i.up(ctx); err != nil {
		t.Fatal(err)
	}
	_, remedy, _ := strings.Cut(rejected.stderr, "`karmadactl ")
	remedy, _, _ = strings.Cut(remedy, "`")
	i.karmadactl(ctx, strings.Fields(strings.ReplaceAll(remedy, placeholder, shared.memberKubeconfig(t, member2)))...).mustSucceed(t)
	account := &corev1.ServiceAccount{ObjectMeta: objectMeta("karmada-cluster", "karmada-"+far)}
	eventually(t, "deletion of the ServiceAccount in the member", func(ctx context.Context) error { return checkAbsent(ctx, shared.members[member2], account) })
	purge().mustSucceed(t)
	if _, err := os.Stat(i.dir); !os.IsNotExist(err) {
		t.Errorf("the data directory still exists (%v)", err)
	}
}

// propagateSecret propagates a Secret to a cluster, and returns when its Work exists.
func (i *installation) propagateSecret(t *testing.T, cluster, text string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: objectMeta("default", "propagated"), Data: map[string][]byte{"a": []byte(text)}}
	selector := policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Secret", Name: secret.Name}
	for _, object := range []client.Object{secret, selectAll(selector).propagationPolicy("default", cluster)} {
		if err := i.karmada.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "a Work with the Secret", func(ctx context.Context) error {
		works, err := listWorks(ctx, i, cluster, "default")
		if err == nil && len(works) == 0 {
			err = errors.New("no Works")
		}
		return err
	})
}

// checkNoSecretsOnDisk checks that no file of the control plane contains the tokens of its
// Secrets or the given text, and that the audit log has entries for the Secrets.
func (i *installation) checkNoSecretsOnDisk(t *testing.T, text string) {
	t.Helper()
	secrets := &corev1.SecretList{}
	if err := i.karmada.List(t.Context(), secrets, client.InNamespace("karmada-cluster")); err != nil {
		t.Fatal(err)
	}
	tokens := map[string][]byte{}
	for _, secret := range secrets.Items {
		if token := secret.Data["token"]; len(token) > 0 {
			tokens[secret.Name], tokens[secret.Name+" as base64"] = token, []byte(base64.StdEncoding.EncodeToString(token))
		}
	}
	if len(tokens) == 0 {
		t.Fatalf("no tokens in %d Secrets", len(secrets.Items))
	}
	tokens["propagated"], tokens["propagated as base64"] = []byte(text), []byte(base64.StdEncoding.EncodeToString([]byte(text)))
	audited := false
	err := filepath.WalkDir(i.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		for name, token := range tokens {
			if bytes.Contains(data, token) {
				t.Errorf("the value of Secret %s is in file %s", name, strings.TrimPrefix(path, i.dir))
			}
			secret, _, _ := strings.Cut(name, " ")
			audited = audited || entry.Name() == "audit.log" && bytes.Contains(data, []byte(`"resource":"secrets","namespace":"karmada-cluster","name":"`+secret+`"`))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !audited {
		t.Error("the audit log has no entry for the Secrets")
	}
}
