package objectcachetest

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func randomHex(random *rand.Rand, n int) string {
	text := ""
	for len(text) < n {
		text += fmt.Sprintf("%016x", random.Uint64())
	}
	return text[:n]
}

// BenchPod returns Pod number i for benchmarks: about 3 KiB with names, IDs and times as in real clusters. All
// Pods have the word nginx, half of them evenly, one of a hundred seldom, and one of 33 333 rareword.
// One of a thousand is Pending, the others are Running.
func BenchPod(random *rand.Rand, i int) *unstructured.Unstructured {
	app, uid := fmt.Sprintf("app-%d", i%500), randomHex(random, 32)
	environment := []any{}
	for j := range 8 {
		environment = append(environment, map[string]any{"name": fmt.Sprintf("SETTING_%d", j), "value": fmt.Sprintf("value-%d-of-%s", j, app)})
	}
	note := ""
	if i%33_333 == 0 {
		note += " rareword"
	}
	if i%100 == 0 {
		note += " seldom"
	}
	if i%2 == 0 {
		note += " evenly"
	}
	condition := func(kind string) any {
		return map[string]any{"type": kind, "status": "True", "lastProbeTime": nil, "lastTransitionTime": "2026-11-20T10:11:12Z"}
	}
	container := func(name string) any {
		return map[string]any{
			"name": name, "image": "docker.io/library/nginx:1.19", "imagePullPolicy": "IfNotPresent", "env": environment,
			"resources": map[string]any{"requests": map[string]any{"cpu": "250m", "memory": "256Mi"},
				"limits": map[string]any{"cpu": "1", "memory": "512Mi"}},
			"livenessProbe": map[string]any{"httpGet": map[string]any{"path": "/healthz", "port": int64(8080), "scheme": "HTTP"},
				"periodSeconds": int64(10), "failureThreshold": int64(3)},
			"volumeMounts": []any{map[string]any{"name": "kube-api-access-" + randomHex(random, 5),
				"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true}},
			"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
		}
	}
	status := func(name string) any {
		return map[string]any{
			"name": name, "ready": true, "restartCount": int64(random.IntN(5)), "image": "docker.io/library/nginx:1.19", "started": true,
			"imageID":     "docker.io/library/nginx@sha256:" + randomHex(rand.New(rand.NewPCG(7, 7)), 64),
			"containerID": "containerd://" + randomHex(random, 64),
			"state":       map[string]any{"running": map[string]any{"startedAt": "2026-11-20T10:11:12Z"}},
		}
	}
	phase := "Running"
	if i%1000 == 0 {
		phase = "Pending"
	}
	ip := fmt.Sprintf("10.%d.%d.%d", random.IntN(256), random.IntN(256), random.IntN(256))
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"labels": map[string]any{"app": app, "pod-template-hash": randomHex(random, 9), "tier": "web",
				"version": "v" + strconv.Itoa(i%10)},
			"annotations":       map[string]any{"example.com/note": "managed by the team" + note},
			"creationTimestamp": fmt.Sprintf("2026-11-%02dT%02d:%02d:%02dZ", 1+i%25, random.IntN(24), random.IntN(60), random.IntN(60)),
			"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app + "-" + randomHex(random, 9),
				"uid": randomHex(random, 8), "controller": true, "blockOwnerDeletion": true}},
		},
		"spec": map[string]any{
			"containers": []any{container("main")}, "nodeName": fmt.Sprintf("node-%d", random.IntN(100)), "restartPolicy": "Always",
			"dnsPolicy":          "ClusterFirst",
			"serviceAccountName": "default", "schedulerName": "default-scheduler", "priority": int64(0), "terminationGracePeriodSeconds": int64(30),
			"tolerations": []any{map[string]any{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
				"tolerationSeconds": int64(300)}},
		},
		"status": map[string]any{
			"phase": phase, "podIP": ip, "podIPs": []any{map[string]any{"ip": ip}}, "hostIP": "192.168.0.1", "qosClass": "Burstable",
			"conditions":        []any{condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled")},
			"containerStatuses": []any{status("main")},
		},
	}}
	pod.SetNamespace(fmt.Sprintf("namespace-%d", i%50))
	pod.SetName(fmt.Sprintf("%s-%s-%s", app, randomHex(random, 9), randomHex(random, 5)))
	pod.SetUID(types.UID(fmt.Sprintf("%s-%s-4%s-8%s-%s", uid[:8], uid[8:12], uid[12:15], uid[15:18], uid[18:30])))
	return pod
}
