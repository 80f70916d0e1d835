package extensionserver

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"
)

// listener counts the notifications of a certificate source.
type listener struct{ notified chan struct{} }

func (l listener) Enqueue() { l.notified <- struct{}{} }

func TestPolledCAIsReadAgainWithoutWatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	writeCA := func() {
		certificate, _, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, certificate, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeCA()
	source, err := dynamiccertificates.NewDynamicCAContentFromFile("test", file)
	if err != nil {
		t.Fatal(err)
	}
	polled := PollCA(source)
	before := string(polled.CurrentCABundleContent())
	instances := inotifyInstances(t)
	synctest.Test(t, func(t *testing.T) {
		changed := listener{make(chan struct{}, 1)}
		polled.AddListener(changed)
		ctx, cancel := context.WithCancel(t.Context())
		go polled.(dynamiccertificates.ControllerRunner).Run(ctx, 1)
		synctest.Wait()
		if now := inotifyInstances(t); now > instances {
			t.Errorf("%d inotify instances, %d before", now, instances)
		}
		writeCA()
		<-changed.notified // after certificatePollPeriod of the time of the bubble
		if string(polled.CurrentCABundleContent()) == before {
			t.Error("the CA did not change")
		}
		cancel()
		synctest.Wait()
	})
}

func TestStaticCAIsNotPolled(t *testing.T) {
	certificate, _, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	static, err := dynamiccertificates.NewStaticCAContent("test", certificate)
	if err != nil {
		t.Fatal(err)
	}
	if PollCA(static) != static {
		t.Error("a static CA is polled")
	}
	if PollCA(nil) != nil || pollServingCert(nil) != nil {
		t.Error("a missing certificate became a provider")
	}
}

// inotifyInstances returns the number of inotify instances of this process.
func inotifyInstances(t *testing.T) (count int) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("this system has no /proc")
	}
	for _, file := range files {
		if target, err := os.Readlink("/proc/self/fd/" + file.Name()); err == nil && strings.Contains(target, "inotify") {
			count++
		}
	}
	return count
}
