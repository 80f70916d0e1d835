package memberproxy_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// podServer serves a member that has the given Pods in the namespace a.
func podServer(pods ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		rest := strings.TrimPrefix(req.URL.Path, "/api/v1/namespaces/a/pods")
		switch {
		case req.URL.Query().Get("limit") != "":
			http.Error(w, "no pages here", http.StatusBadRequest)
		case rest == "" && strings.Contains(req.Header.Get("Accept"), "as=Table"):
			var rows []metav1.TableRow
			for _, pod := range pods {
				rows = append(rows, metav1.TableRow{Cells: []any{pod}, Object: rawPod(pod)})
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, Rows: rows})
		case rest == "":
			list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(len(pods)), Continue: "more", RemainingItemCount: new(int64(7))}}
			for _, pod := range pods {
				list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Annotations: map[string]string{"kept": "yes"}}})
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(list)
		case req.Header.Get("Upgrade") != "":
			echo(w, req)
		default:
			name, sub, _ := strings.Cut(strings.Trim(rest, "/"), "/")
			for _, pod := range pods {
				if pod == name && isLookup(req) {
					fmt.Fprintf(w, objectFormat, "v1", "Pod", "a", pod)
					return
				}
				if pod == name {
					fmt.Fprintf(w, "%s %s %s by %s", req.Method, pod, sub, req.Header.Get("Impersonate-User"))
					return
				}
			}
			status := apierrors.NewNotFound(corev1.Resource("pods"), path.Base(req.URL.Path)).ErrStatus
			status.Kind = "Status"
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(status)
		}
	}
}

// objectFormat is an object with an apiVersion, a kind, a namespace and a name.
const objectFormat = `{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"name":%q,"uid":"0001"}}`

// isLookup reports whether the proxy itself, and not a user, sent a request for an object.
func isLookup(req *http.Request) bool {
	return req.Method == http.MethodGet && req.Header.Get("Accept") == "application/json"
}

// rawPod returns a Pod's metadata in the form that tables contain.
func rawPod(name string) (raw runtime.RawExtension) {
	raw.Raw = fmt.Appendf(nil, `{"kind":"PartialObjectMetadata","metadata":{"name":%q}}`, name)
	return raw
}

// addMember registers another member.
func (f *fixture) addMember(t *testing.T, name string, handler http.Handler) *clusterv1alpha1.Cluster {
	t.Helper()
	member := httptest.NewTLSServer(handler)
	t.Cleanup(member.Close)
	cluster := f.cluster.DeepCopy()
	cluster.Name, cluster.Spec.APIEndpoint = name, member.URL
	f.others = append(f.others, cluster)
	return cluster
}

// newThreeMembers registers the members m1 to m3, but not in the order of their names.
func newThreeMembers(t *testing.T) *fixture {
	t.Helper()
	f, _ := newFixture(t, podServer("web", "db"))
	f.addMember(t, "m3", podServer("web", "log"))
	f.addMember(t, "m2", podServer())
	return f
}

func TestAllClustersAreListedInOrder(t *testing.T) {
	f := newThreeMembers(t)
	front := f.front(t)
	req := newRequest(t, "GET", front.URL+"/everywhere/api/v1/namespaces/a/pods?limit=500", "")
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf,application/json")
	var pods corev1.PodList
	if err := json.Unmarshal([]byte(sendRequest(t, req).body), &pods); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, pod := range pods.Items {
		got = append(got, pod.Annotations["resource.karmada.io/query-from-cluster"]+"/"+pod.Name+" "+pod.Annotations["kept"])
	}
	if diff := cmp.Diff([]string{"m1/web yes", "m1/db yes", "m3/web yes", "m3/log yes"}, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if want := (metav1.ListMeta{ResourceVersion: "2"}); pods.Kind != "PodList" || !cmp.Equal(pods.ListMeta, want) {
		t.Errorf("the list is %s %+v, want that of the first cluster without a next page", pods.Kind, pods.ListMeta)
	}

	req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
	var table metav1.Table
	if err := json.Unmarshal([]byte(sendRequest(t, req).body), &table); err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, row := range table.Rows {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(row.Object.Raw, &object); err != nil {
			t.Fatal(err)
		}
		got = append(got, object.Annotations["resource.karmada.io/query-from-cluster"]+"/"+object.Name+" "+fmt.Sprint(row.Cells...))
	}
	if diff := cmp.Diff([]string{"m1/web web", "m1/db db", "m3/web web", "m3/log log"}, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestListWithFieldSelector(t *testing.T) {
	front := newThreeMembers(t).front(t)
	// These members ignore field selectors and return all Pods.
	var pods corev1.PodList
	got := sendRequest(t, newRequest(t, "GET", front.URL+"/everywhere/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dweb", ""))
	if err := json.Unmarshal([]byte(got.body), &pods); err != nil || len(pods.Items) != 4 {
		t.Errorf("got %d Pods, %v of %v", len(pods.Items), err, got)
	}
}

func TestListParametersOfOneClusterAreRemoved(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"PodList","items":[{"metadata":{"name":%q}}]}`, req.URL.RawQuery)
	}))
	front := f.front(t)
	for query, want := range map[string]string{
		"resourceVersion=70&resourceVersionMatch=Exact": "",
		"resourceVersion=0":                             "resourceVersion=0",
		"labelSelector=a&limit=1":                       "labelSelector=a",
		"continue=of-one-cluster":                       "",
	} {
		got := sendRequest(t, newRequest(t, "GET", front.URL+"/everywhere/api/v1/pods?"+query, ""))
		if !strings.Contains(got.body, fmt.Sprintf(`"name":%q`, want)) {
			t.Errorf("%s: members receive %s, want %q", query, got.body, want)
		}
	}
}

func TestWarningsNameFailedClusters(t *testing.T) {
	f := newThreeMembers(t)
	// The timeout must be long enough for the members that respond.
	f.proxy.SetLookupTimeout(5 * testTimeout)
	f.addMember(t, "m4", http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }))
	f.addMember(t, "m5", podServer()).Spec.ImpersonatorSecretRef = nil
	f.addMember(t, "m6", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	f.addMember(t, "m7", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"kind":"Status","message":"etcd is\nfull"}`)
	}))
	f.addMember(t, "m8", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
	f.addMember(t, "m9", failWith(http.StatusForbidden))
	f.addMember(t, "n1", http.NotFoundHandler())
	f.addMember(t, "n2", http.NotFoundHandler()).Status.APIEnablements = enable("secrets")
	f.addMember(t, "n3", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","details":{"kind":"pods"}}`)
	}))
	resp, err := http.DefaultClient.Do(newRequest(t, "GET", f.front(t).URL+"/everywhere/api/v1/namespaces/a/pods", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	warnings := resp.Header["Warning"]
	if resp.StatusCode != http.StatusOK || len(warnings) != 7 {
		t.Fatalf("got %s with %d warnings %q, want 7", resp.Status, len(warnings), warnings)
	}
	for i, want := range []string{`\"m4\" (` + f.others[2].Spec.APIEndpoint + `) accepted the request and sent no data for 1.5s`, "m5", "m6", `\"m7\" is omitted: it returns 500 Internal Server Error: etcd is full`, `\"m8\" is omitted: it returns 429 Too Many Requests`, `\"m9\" is omitted: its response with code 403`, `\"n1\" is omitted: its response with code 404`} {
		if !strings.Contains(warnings[i], want) {
			t.Errorf("warning %q does not contain %s", warnings[i], want)
		}
	}
}

func TestListNotFoundInAnyCluster(t *testing.T) {
	f, _ := newFixture(t, http.NotFoundHandler())
	url := f.front(t).URL + "/everywhere/apis/apps/v1/deployments"
	want := `cannot list deployments.apps: no cluster returns a list, and it is unknown whether clusters [m1] have objects: cluster "m1" is omitted: `
	if got := sendRequest(t, newRequest(t, "GET", url, "")); got.code != 503 || !strings.HasPrefix(got.body, want) {
		t.Errorf("with unknown APIs: got %v", got)
	}
	f.cluster.Status.APIEnablements, f.cluster.Status.Conditions = enable("pods"), completeAPIs(metav1.ConditionTrue)
	if got := sendRequest(t, newRequest(t, "GET", url, "")); got != (clientResponse{404, "not found\n"}) {
		t.Errorf("with known APIs: got %v", got)
	}
}

func TestNonResourcePathsAreServedByKarmada(t *testing.T) {
	karmada := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprint(w, req.URL.RequestURI(), " ", req.Header.Get("Authorization"), " for ", req.Header["Impersonate-User"], req.Header["Impersonate-Group"])
	}))
	t.Cleanup(karmada.Close)
	f := newThreeMembers(t)
	front := f.front(t)
	if got := sendRequest(t, newRequest(t, "GET", front.URL+"/everywhere/version", "")); got.code != http.StatusServiceUnavailable {
		t.Errorf("without a Karmada API server: got %v", got)
	}
	f.createProxy(t, &rest.Config{Host: karmada.URL, BearerToken: "ours", TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: karmada.Certificate().Raw}),
	}})
	req := newRequest(t, "GET", front.URL+"/everywhere/apis/apps/v1?timeout=32s", "")
	req.Header.Set("Authorization", "Bearer stolen")
	req.Header.Set("Impersonate-User", "root")
	if got, want := sendRequest(t, req), (clientResponse{200, "/apis/apps/v1?timeout=32s Bearer ours for [alice] [dev ops]"}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := sendRequest(t, newRequest(t, "GET", front.URL+"/everywhere", "")); got.code != http.StatusMovedPermanently {
		t.Errorf("an empty path: got %v", got)
	}
}
