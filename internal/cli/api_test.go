package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/rogpeppe/go-internal/testscript"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fakeAPI serves a control plane and its members from files. The file <cluster>/<path>.json is an
// object, where <cluster> is karmada or the name of a member. The file <cluster>/<path>.log is the
// log of a container. Files with other names change the responses of a cluster: if the file
// <cluster>/hangs exists, the cluster never responds; <cluster>/forbidden makes it return
// Forbidden; <cluster>/warns makes it add a warning to each response; <cluster>/<path>/refused
// makes a list of the collection at this path fail. A watch sends one event for each object and
// ends. A watch without objects stays open. Writes, and requests with impersonation, are recorded
// in the file requests.
type fakeAPI struct {
	dir string

	mu      sync.Mutex
	objects map[string]map[string]any // by cluster and path
	members []string
}

// resource is a type that every cluster serves.
type resource struct {
	version, plural, kind string
	namespaced            bool
}

var resources = []resource{
	{"v1", "pods", "Pod", true},
	{"v1", "configmaps", "ConfigMap", true},
	{"v1", "namespaces", "Namespace", false},
	{"v1", "nodes", "Node", false},
	{"v1", "events", "Event", true},
	{"apps/v1", "deployments", "Deployment", true},
	{"cluster.karmada.io/v1alpha1", "clusters", "Cluster", false},
	{"policy.karmada.io/v1alpha1", "propagationpolicies", "PropagationPolicy", true},
	{"policy.karmada.io/v1alpha1", "clusterpropagationpolicies", "ClusterPropagationPolicy", false},
	{"policy.karmada.io/v1alpha1", "overridepolicies", "OverridePolicy", true},
	{"policy.karmada.io/v1alpha1", "clusteroverridepolicies", "ClusterOverridePolicy", false},
	{"config.karmada.io/v1alpha1", "resourceinterpretercustomizations", "ResourceInterpreterCustomization", false},
	{"config.karmada.io/v1alpha1", "resourceinterpreterwebhookconfigurations", "ResourceInterpreterWebhookConfiguration", false},
	{"work.karmada.io/v1alpha1", "works", "Work", true},
	{"work.karmada.io/v1alpha2", "resourcebindings", "ResourceBinding", true},
	{"work.karmada.io/v1alpha2", "clusterresourcebindings", "ClusterResourceBinding", false},
	{"apps.karmada.io/v1alpha1", "workloadrebalancers", "WorkloadRebalancer", false},
	{"ships.example.io/v1", "ships", "Ship", true},
	{"metrics.k8s.io/v1beta1", "pods", "PodMetrics", true},
	{"metrics.k8s.io/v1beta1", "nodes", "NodeMetrics", false},
}

// serveAPI starts a fakeAPI with the files of a script, and writes its kubeconfig.
func serveAPI(ts *testscript.TestScript, _ bool, _ []string) {
	a := &fakeAPI{dir: ts.Getenv("WORK"), objects: map[string]map[string]any{}}
	ts.Check(a.load())
	server := httptest.NewServer(a)
	// Close open connections, because the server would otherwise wait for hanging requests.
	ts.Defer(server.CloseClientConnections)
	ts.Setenv("KUBECONFIG", filepath.Join(a.dir, "kubeconfig"))
	ts.Setenv("HOME", a.dir)
	ts.Check(os.WriteFile(ts.Getenv("KUBECONFIG"), []byte(`{apiVersion: v1, kind: Config, current-context: karmada,
		clusters: [{name: karmada, cluster: {server: "`+server.URL+`"}}],
		contexts: [{name: karmada, context: {cluster: karmada, namespace: shop}}, {name: yard, context: {cluster: karmada, namespace: yard}}]}`), 0o600))
}

func (f *fakeAPI) load() error {
	return filepath.WalkDir(f.dir, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".json") {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		object := map[string]any{}
		if err := json.Unmarshal(text, &object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		name, _ := filepath.Rel(f.dir, strings.TrimSuffix(file, ".json"))
		f.storeObject(name, object)
		if member, ok := strings.CutPrefix(name, "karmada/apis/cluster.karmada.io/v1alpha1/clusters/"); ok {
			f.members = append(f.members, member)
		}
		return nil
	})
}

// storeObject stores an object under its path, and sets the metadata that the path contains.
func (f *fakeAPI) storeObject(at string, object map[string]any) {
	kind, namespace, _ := parsePath(at)
	object["apiVersion"], object["kind"] = kind.version, kind.kind
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"], metadata["uid"], metadata["resourceVersion"] = path.Base(at), at, "7"
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	object["metadata"] = metadata
	f.objects[at] = object
}

// parsePath parses a path: <cluster>/api/v1/... or <cluster>/apis/<group>/<version>/...
func parsePath(at string) (kind resource, namespace, name string) {
	parts := strings.Split(at, "/")[1:]
	version, rest := "v1", parts[min(2, len(parts)):]
	if parts[0] == "apis" && len(parts) > 3 {
		version, rest = parts[1]+"/"+parts[2], parts[3:]
	}
	if len(rest) > 2 && rest[0] == "namespaces" {
		namespace, rest = rest[1], rest[2:]
	}
	rest = append(rest, "", "")
	i := slices.IndexFunc(resources, func(r resource) bool { return r.version == version && r.plural == rest[0] })
	if i < 0 {
		return resource{}, "", ""
	}
	return resources[i], namespace, rest[1]
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cluster, rest := "karmada", strings.Trim(r.URL.Path, "/")
	for _, member := range f.members {
		if proxied, ok := strings.CutPrefix(rest, "apis/cluster.karmada.io/v1alpha1/clusters/"+member+"/proxy"); ok {
			cluster, rest = member, strings.Trim(proxied, "/")
		}
	}
	switch {
	case f.hasFile(cluster + "/hangs"):
		<-r.Context().Done()
		return
	case f.hasFile(cluster + "/down"):
		replyError(w, http.StatusServiceUnavailable, "ServiceUnavailable", "no connection to cluster \""+cluster+"\"")
		return
	case f.hasFile(cluster + "/forbidden"):
		replyError(w, http.StatusForbidden, "Forbidden", "clusters.cluster.karmada.io \""+cluster+"\" is forbidden")
		return
	}
	if f.hasFile(cluster + "/warns") {
		w.Header().Set("Warning", `299 - "this is old"`)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if user := r.Header.Get("Impersonate-User"); user != "" {
		f.recordRequest(fmt.Sprintf("as %s %s %q %s/%s", user, r.Header.Get("Impersonate-Uid"), r.Header.Values("Impersonate-Group"), cluster, rest))
	}
	if cluster == "karmada" && strings.HasPrefix(rest, "apis/search.karmada.io/") {
		f.serveSearch(w, r)
		return
	}
	if r.Method != http.MethodGet {
		f.serveWrite(w, r, cluster+"/"+rest)
		return
	}
	f.serveRead(w, r, cluster+"/"+rest)
}

func (f *fakeAPI) hasFile(name string) bool {
	_, err := os.Stat(filepath.Join(f.dir, name))
	return err == nil
}

func (f *fakeAPI) serveRead(w http.ResponseWriter, r *http.Request, at string) {
	if f.serveDiscovery(w, at) {
		return
	}
	if pod, ok := strings.CutSuffix(at, "/log"); ok {
		http.ServeFile(w, r, filepath.Join(f.dir, pod+".log"))
		return
	}
	kind, _, name := parsePath(at)
	object, found := f.objects[at]
	switch {
	case kind.kind == "":
		replyError(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	case f.hasFile(at + "/refused"):
		replyError(w, http.StatusForbidden, "Forbidden", kind.plural+" is forbidden")
	case name == "":
		f.serveList(w, r, at, kind)
	case !found:
		replyNotFound(w, kind, name)
	case wantsTable(r):
		replyJSON(w, newTable(object))
	default:
		replyJSON(w, object)
	}
}

func wantsTable(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "as=Table") }

// serveList returns the objects of a collection, in the order of their paths.
func (f *fakeAPI) serveList(w http.ResponseWriter, r *http.Request, at string, kind resource) {
	_, namespace, _ := parsePath(at)
	cluster, _, _ := strings.Cut(at, "/")
	query, _ := labels.Parse(r.URL.Query().Get("labelSelector"))
	name, _ := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	items := []map[string]any{}
	var paths []string
	for path := range f.objects {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		objectKind, objectNamespace, objectName := parsePath(path)
		metadata, _ := f.objects[path]["metadata"].(map[string]any)
		set := labels.Set{}
		given, _ := metadata["labels"].(map[string]any)
		for key, value := range given {
			set[key], _ = value.(string)
		}
		if strings.HasPrefix(path, cluster+"/") && objectKind == kind && (namespace == "" || objectNamespace == namespace) && query.Matches(set) && (name == "" || strings.Contains(name, "=") || name == objectName) {
			items = append(items, f.objects[path])
		}
	}
	if r.URL.Query().Get("watch") != "" && len(items) == 0 {
		f.mu.Unlock()
		defer f.mu.Lock()
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // no events
		return
	}
	if r.URL.Query().Get("watch") != "" {
		for _, item := range items {
			replyJSON(w, map[string]any{"type": "MODIFIED", "object": newTable(item)})
		}
		return
	}
	if wantsTable(r) {
		replyJSON(w, newTable(items...))
		return
	}
	replyJSON(w, map[string]any{"apiVersion": kind.version, "kind": kind.kind + "List", "metadata": map[string]any{"resourceVersion": "7"}, "items": items})
}

func newTable(items ...map[string]any) map[string]any {
	rows := []any{}
	for _, item := range items {
		metadata, _ := item["metadata"].(map[string]any)
		rows = append(rows, map[string]any{"cells": []any{metadata["name"], "5m"}, "object": map[string]any{
			"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata,
		}})
	}
	return map[string]any{
		"apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": map[string]any{"resourceVersion": "7"}, "rows": rows,
		"columnDefinitions": []any{map[string]any{"name": "Name", "type": "string", "format": "name"}, map[string]any{"name": "Age", "type": "string"}},
	}
}

// serveDiscovery serves the discovery of types. The groups of metrics and ships are served only if
// the cluster has a directory with the name of the group.
func (f *fakeAPI) serveDiscovery(w http.ResponseWriter, at string) bool {
	cluster, rest, _ := strings.Cut(at, "/")
	known := slices.DeleteFunc(slices.Clone(resources), func(r resource) bool {
		group, _, _ := strings.Cut(r.version, "/")
		return slices.Contains([]string{"metrics.k8s.io", "ships.example.io"}, group) && !f.hasFile(cluster+"/apis/"+group)
	})
	switch rest {
	case "api":
		replyJSON(w, map[string]any{"kind": "APIVersions", "versions": []any{"v1"}})
		return true
	case "apis":
		groups := map[string]any{}
		var list []any
		for _, r := range known {
			group, version, ok := strings.Cut(r.version, "/")
			if ok && groups[group] == nil {
				preferred := map[string]any{"groupVersion": r.version, "version": version}
				groups[group] = map[string]any{"name": group, "versions": []any{preferred}, "preferredVersion": preferred}
				list = append(list, groups[group])
			}
		}
		replyJSON(w, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": list})
		return true
	}
	version := strings.TrimPrefix(strings.TrimPrefix(rest, "apis/"), "api/")
	var list []any
	for _, r := range known {
		if r.version == version {
			list = append(list, map[string]any{"name": r.plural, "singularName": strings.ToLower(r.kind), "namespaced": r.namespaced, "kind": r.kind, "verbs": []any{"create", "delete", "get", "list", "patch", "watch"}})
		}
	}
	if len(list) == 0 {
		return false
	}
	replyJSON(w, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": list})
	return true
}

// serveWrite records the request and changes the object.
func (f *fakeAPI) serveWrite(w http.ResponseWriter, r *http.Request, at string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		replyError(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	if kind, _, name := parsePath(at); r.Method != http.MethodPost && f.objects[at] == nil {
		replyNotFound(w, kind, name)
		return
	}
	f.recordRequest(r.Method + " " + at)
	object := map[string]any{}
	switch r.Method {
	case http.MethodPost:
		_ = json.Unmarshal(body, &object)
		metadata, _ := object["metadata"].(map[string]any)
		if prefix, ok := metadata["generateName"].(string); ok && metadata["name"] == nil {
			metadata["name"] = prefix + "x7k2p"
		}
		at += "/" + fmt.Sprint(metadata["name"])
		f.storeObject(at, object)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
	case http.MethodPatch:
		before, _ := json.Marshal(f.objects[at])
		after, err := jsonpatch.MergePatch(before, body)
		if err != nil {
			replyError(w, http.StatusBadRequest, "BadRequest", err.Error())
			return
		}
		_ = json.Unmarshal(after, &object)
		f.storeObject(at, object)
	case http.MethodPut:
		_ = json.Unmarshal(body, &object)
		f.storeObject(at, object)
	case http.MethodDelete:
		delete(f.objects, at)
		replyJSON(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
		return
	}
	replyJSON(w, f.objects[at])
}

func (f *fakeAPI) recordRequest(line string) {
	file, err := os.OpenFile(filepath.Join(f.dir, "requests"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(file, line)
		_ = file.Close()
	}
}

func replyJSON(w http.ResponseWriter, content map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(content)
}

// replyNotFound returns the same response as API servers if an object does not exist.
func replyNotFound(w http.ResponseWriter, kind resource, name string) {
	group, _, hasGroup := strings.Cut(kind.version, "/")
	if !hasGroup {
		group = ""
	}
	status := apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: kind.plural}, name).Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(status)
}

func replyError(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message})
}
