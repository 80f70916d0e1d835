package objectcache_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

const (
	benchClusters  = 20
	benchPods      = 100_000
	benchFollowers = 500
	benchPage      = 10_000
	// idleTime is how long the benchmark measures the processor time of idle followers.
	idleTime = 5 * time.Second
)

// BenchmarkCache fills a cache with 100 000 Pods of 3 KiB in 20 clusters, and reports its memory and the
// times of reads and events. Run it with -benchtime=1x.
func BenchmarkCache(b *testing.B) {
	for b.Loop() {
		began := time.Now()
		cache, size := fillBenchCache(b)
		filled := time.Since(began)
		b.ReportMetric(float64(size)/benchPods, "json-bytes/object")
		b.ReportMetric(float64(filled.Microseconds())/benchPods, "µs-to-store/object")
		reportMemory(b, cache)
		reportList(b, cache)
		reportEvents(b, cache)
		runtime.KeepAlive(cache)
	}
}

func fillBenchCache(b *testing.B) (cache *objectcachetest.Cache, jsonBytes int) {
	b.Helper()
	cache = objectcachetest.New(b, objectcachetest.Pods)
	random := rand.New(rand.NewPCG(1, 2))
	const perList = benchPods / benchClusters
	for cluster := range benchClusters {
		name := fmt.Sprintf("member-%02d", cluster)
		writer := cache.AddCluster(name, objectcachetest.Pods)
		list := make([]*objectcache.Object, 0, perList)
		for i := range perList {
			pod := benchPod(random, cluster*perList+i)
			text, err := json.Marshal(pod.Object)
			if err != nil {
				b.Fatal(err)
			}
			jsonBytes += len(text)
			encoded, err := writer.Encode(pod)
			if err != nil {
				b.Fatal(err)
			}
			list = append(list, encoded)
		}
		writer.Replace(list, strconv.Itoa(1_000_000))
	}
	return cache, jsonBytes
}

func reportMemory(b *testing.B, cache *objectcachetest.Cache) {
	b.Helper()
	resident := residentBytes(b)
	runtime.GC()
	stats := runtime.MemStats{}
	runtime.ReadMemStats(&stats)
	var objects, bytes int64
	for _, c := range benchKind(cache).Snapshot().Clusters() {
		objects, bytes = objects+int64(c.Len()), bytes+c.Bytes()
	}
	b.ReportMetric(float64(resident)/1e6, "MB-resident")
	b.ReportMetric(float64(stats.HeapAlloc)/1e6, "MB-heap")
	b.ReportMetric(float64(bytes)/float64(objects), "bytes/object")
}

func residentBytes(b *testing.B) int64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("the resident memory is only known on Linux")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// reportList reports the time to take a snapshot and to read 10 000 objects: as JSON, and decoded.
func reportList(b *testing.B, cache *objectcachetest.Cache) {
	b.Helper()
	read := func(use func(*objectcache.Object) error) time.Duration {
		began, count := time.Now(), 0
		for _, c := range benchKind(cache).Snapshot().Clusters() {
			for object := range c.All("") {
				if count++; count > benchPage {
					return time.Since(began)
				}
				if err := use(object); err != nil {
					b.Fatal(err)
				}
			}
		}
		return time.Since(began)
	}
	var buffer []byte
	b.ReportMetric(float64(read(func(o *objectcache.Object) (err error) {
		buffer, err = o.AppendJSON(buffer[:0])
		return err
	}).Milliseconds()), "ms-JSON-of-10000")
	b.ReportMetric(float64(read(func(o *objectcache.Object) error {
		_, err := o.Decode()
		return err
	}).Milliseconds()), "ms-decode-of-10000")
}

// reportEvents reports the processor time of 500 idle followers, and the time until each of them has an
// event.
func reportEvents(b *testing.B, cache *objectcachetest.Cache) {
	b.Helper()
	const changes = 100
	ctx, cancel := context.WithCancel(b.Context())
	var wait sync.WaitGroup
	received := make(chan time.Time, benchFollowers)
	for range benchFollowers {
		cursor := benchKind(cache).Follow(benchKind(cache).Snapshot().Position())
		wait.Go(func() {
			for {
				// The next change waits for all followers, thus there is one batch for each change.
				if _, err := cursor.Next(ctx); err != nil {
					return
				}
				received <- time.Now()
			}
		})
	}
	before := processorTime(b)
	idle := time.NewTimer(idleTime)
	<-idle.C
	b.ReportMetric(100*float64(processorTime(b)-before)/float64(idleTime), "%-core-idle")
	random := rand.New(rand.NewPCG(3, 4))
	var delays []time.Duration
	for range changes {
		writer := cache.AddCluster("member-00", objectcachetest.Pods)
		encoded, err := writer.Encode(benchPod(random, random.IntN(5000)))
		if err != nil {
			b.Fatal(err)
		}
		sent := time.Now()
		writer.Set(encoded)
		for range benchFollowers {
			delays = append(delays, (<-received).Sub(sent))
		}
	}
	cancel()
	wait.Wait()
	slices.Sort(delays)
	b.ReportMetric(float64(delays[len(delays)/2].Microseconds()), "µs-event-p50")
	b.ReportMetric(float64(delays[len(delays)*99/100].Microseconds()), "µs-event-p99")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	usage := syscall.Rusage{}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func benchKind(cache *objectcachetest.Cache) *objectcache.Kind {
	return cache.KindOf(objectcachetest.Pods.GroupVersionKind)
}

// benchPod returns a Pod of about 3 KiB with the fields that a Pod of a Deployment has.
func benchPod(random *rand.Rand, i int) *unstructured.Unstructured {
	app := fmt.Sprintf("service-%03d", i%200)
	hash, suffix := fmt.Sprintf("%010x", uint64(i%200)*7919), fmt.Sprintf("%05x", i)
	uid := func() string {
		return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", random.Uint32(), random.IntN(1<<16), random.IntN(1<<12), random.IntN(1<<12), random.Uint64()>>16)
	}
	moment := func() string {
		return time.Unix(1_790_000_000+int64(random.IntN(1_000_000)), 0).UTC().Format(time.RFC3339)
	}
	ip := func() string { return fmt.Sprintf("10.%d.%d.%d", random.IntN(256), random.IntN(256), random.IntN(256)) }
	started, host, address, token := moment(), ip(), ip(), fmt.Sprintf("kube-api-access-%05x", random.IntN(1<<20))
	condition := func(kind string) any {
		return map[string]any{"type": kind, "status": "True", "lastProbeTime": nil, "lastTransitionTime": moment(), "observedGeneration": int64(1)}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": app + "-" + hash + "-" + suffix, "namespace": fmt.Sprintf("team-%02d", i%25), "uid": uid(), "generateName": app + "-" + hash + "-",
			"resourceVersion": strconv.Itoa(1000 + random.IntN(1_000_000)), "creationTimestamp": started, "generation": int64(1),
			"labels":          map[string]any{"app": app, "tier": "backend", "pod-template-hash": hash, "team": fmt.Sprintf("team-%02d", i%25)},
			"annotations":     map[string]any{"prometheus.io/scrape": "true", "prometheus.io/port": "9090", "checksum/config": fmt.Sprintf("%016x%016x", random.Uint64(), uint64(i%200))},
			"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app + "-" + hash, "uid": uid(), "controller": true, "blockOwnerDeletion": true}},
		},
		"spec": map[string]any{
			"nodeName": fmt.Sprintf("node-%03d.example.org", random.IntN(300)), "serviceAccountName": app, "serviceAccount": app, "restartPolicy": "Always",
			"dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": int64(30), "enableServiceLinks": true,
			"preemptionPolicy": "PreemptLowerPriority", "priority": int64(0), "securityContext": map[string]any{"runAsNonRoot": true},
			"volumes": []any{map[string]any{"name": token, "projected": map[string]any{"defaultMode": int64(420), "sources": []any{
				map[string]any{"serviceAccountToken": map[string]any{"expirationSeconds": int64(3607), "path": "token"}},
				map[string]any{"configMap": map[string]any{"name": "kube-root-ca.crt", "items": []any{map[string]any{"key": "ca.crt", "path": "ca.crt"}}}},
			}}}},
			"containers": []any{map[string]any{
				"name": app, "image": fmt.Sprintf("registry.example.org/team/%s:1.%d.%d", app, i%40, random.IntN(5)), "imagePullPolicy": "IfNotPresent",
				"ports": []any{map[string]any{"name": "http", "containerPort": int64(8080), "protocol": "TCP"}, map[string]any{"name": "metrics", "containerPort": int64(9090), "protocol": "TCP"}},
				"env": []any{
					map[string]any{"name": "SERVICE_NAME", "value": app}, map[string]any{"name": "LOG_LEVEL", "value": "info"},
					map[string]any{"name": "DATABASE_URL", "value": "postgres://db-" + app + ".example.org:5432/" + app},
					map[string]any{"name": "POD_IP", "valueFrom": map[string]any{"fieldRef": map[string]any{"apiVersion": "v1", "fieldPath": "status.podIP"}}},
				},
				"resources":              map[string]any{"limits": map[string]any{"cpu": "500m", "memory": "512Mi"}, "requests": map[string]any{"cpu": fmt.Sprintf("%dm", 50+i%10*50), "memory": "256Mi"}},
				"livenessProbe":          map[string]any{"httpGet": map[string]any{"path": "/healthz", "port": int64(8080), "scheme": "HTTP"}, "periodSeconds": int64(10), "failureThreshold": int64(3)},
				"volumeMounts":           []any{map[string]any{"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true}},
				"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
			}},
			"tolerations": []any{
				map[string]any{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(300)},
				map[string]any{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(300)},
			},
		},
		"status": map[string]any{
			"phase": "Running", "hostIP": host, "podIP": address, "podIPs": []any{map[string]any{"ip": address}}, "startTime": started, "qosClass": "Burstable",
			"conditions": []any{condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled")},
			"containerStatuses": []any{map[string]any{
				"name": app, "ready": true, "started": true, "restartCount": int64(random.IntN(3)), "state": map[string]any{"running": map[string]any{"startedAt": moment()}},
				"containerID": fmt.Sprintf("containerd://%016x%016x%016x%016x", random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64()),
				"imageID":     fmt.Sprintf("registry.example.org/team/%s@sha256:%016x%048x", app, uint64(i%200)*104729, i%200),
			}},
		},
	}}
}

// BenchmarkWatches caches 100 000 Pods of 20 members through their API, and reports the time until all of
// them are listed, and the resident memory of the process, which also contains the members. Run it with
// -benchtime=1x.
func BenchmarkWatches(b *testing.B) {
	for b.Loop() {
		objects := []client.Object{}
		for i := range benchClusters {
			cluster := clusterOf(fmt.Sprintf("member-%02d", i), newPodServer(b, i).URL)
			setKinds(cluster, "Pod")
			objects = append(objects, cluster)
		}
		began := time.Now()
		c := newControl(b, objectcache.Options{}, append(objects, registryOf("all", "Pod"))...)
		if missing := c.cache.WaitForSync(b.Context(), 10*time.Minute); len(missing) > 0 {
			b.Fatalf("not listed: %+v", missing)
		}
		b.ReportMetric(time.Since(began).Seconds(), "s-to-list")
		b.ReportMetric(float64(residentBytes(b))/1e6, "MB-resident")
		count := 0
		for _, report := range c.cache.Report() {
			count += report.Objects
		}
		b.ReportMetric(float64(count), "objects")
	}
}

// newPodServer returns a member that generates its Pods for each list, and sends no events.
func newPodServer(b *testing.B, cluster int) *httptest.Server {
	b.Helper()
	const pods = benchPods / benchClusters
	closed := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch {
		case r.URL.Path == "/api/v1":
			writeJSON(w, metav1.APIResourceList{
				TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
				APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}}},
			})
		case query.Get("watch") != "":
			_ = http.NewResponseController(w).Flush()
			select {
			case <-closed:
			case <-r.Context().Done():
			}
		default:
			first, _ := strconv.Atoi(query.Get("continue"))
			limit, _ := strconv.Atoi(query.Get("limit"))
			random, items := rand.New(rand.NewPCG(uint64(cluster), uint64(first))), []any{}
			for i := first; i < min(first+limit, pods); i++ {
				items = append(items, benchPod(random, cluster*pods+i).Object)
			}
			metadata := map[string]any{"resourceVersion": "2000000"}
			if first+limit < pods {
				metadata["continue"] = strconv.Itoa(first + limit)
			}
			writeJSON(w, map[string]any{"apiVersion": "v1", "kind": "PodList", "metadata": metadata, "items": items})
		}
	}))
	b.Cleanup(func() {
		close(closed)
		server.CloseClientConnections()
		server.Close()
	})
	return server
}
