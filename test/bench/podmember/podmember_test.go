package podmember

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func startMember(t *testing.T, o Options) (*Member, kubernetes.Interface) {
	t.Helper()
	member, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(member.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: member.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, Timeout: time.Minute,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return member, client
}

func podKey(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func TestPodsAreOrderedAndUnique(t *testing.T) {
	names, uids := map[string]bool{}, map[string]bool{}
	for number := range 3 {
		g := &generator{segments: parseTemplate(podTemplate), options: Options{Member: number, Pods: 500, Namespaces: 10}}
		var keys []string
		for i := range 500 {
			text := g.append(nil, i, 7, 3)
			pod := &corev1.Pod{}
			if err := json.Unmarshal(text, pod); err != nil {
				t.Fatalf("Pod %d: %v: %s", i, err, text)
			}
			if len(text) < 2900 || len(text) > 3400 {
				t.Fatalf("Pod %d has %d bytes, want about 3 KiB", i, len(text))
			}
			if strings.ContainsAny(string(text), "\n") || !strings.Contains(string(text), CommonWord) || pod.Annotations[ChangeAnnotation] != "3" || pod.ResourceVersion != "7" {
				t.Fatalf("Pod %d: %s", i, text)
			}
			if isRare := (number*500+i)%RareInterval == 0; strings.Contains(string(text), RareWord) != isRare {
				t.Fatalf("Pod %d of member %d: the rare word is in the Pod: %t", i, number, !isRare)
			}
			keys = append(keys, podKey(pod))
			if names[podKey(pod)] || uids[string(pod.UID)] {
				t.Fatalf("Pod %d of member %d: name or UID exists already", i, number)
			}
			names[podKey(pod)], uids[string(pod.UID)] = true, true
		}
		if !slices.IsSorted(keys) {
			t.Errorf("the Pods of member %d are not sorted", number)
		}
	}
}

func TestInNamespace(t *testing.T) {
	tests := map[string]struct {
		pods, namespaces int
		namespace        string
		begin, end       int
	}{
		"the first of several":            {100, 10, Namespace(0), 0, 10},
		"one in the middle":               {100, 10, Namespace(4), 40, 50},
		"the last one":                    {100, 10, Namespace(9), 90, 100},
		"a number that does not divide":   {10, 3, Namespace(1), 4, 7},
		"more namespaces than Pods":       {2, 4, Namespace(1), 1, 1},
		"a namespace that does not exist": {100, 10, "zzz", 100, 100},
		"a name before all namespaces":    {100, 10, "aaa", 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := &generator{options: Options{Pods: test.pods, Namespaces: test.namespaces}}
			begin, end := g.inNamespace(test.namespace)
			if begin != test.begin || end != test.end {
				t.Errorf("inNamespace() = %d, %d, want %d, %d", begin, end, test.begin, test.end)
			}
		})
	}
}

func TestListInPages(t *testing.T) {
	_, client := startMember(t, Options{Pods: 700, Namespaces: 7})
	pods := client.CoreV1().Pods("")
	all, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) != 700 || all.Continue != "" {
		t.Fatalf("%d Pods, %v", len(all.Items), err)
	}
	var got []string
	options := metav1.ListOptions{Limit: 300}
	for pages := 1; ; pages++ {
		page, err := pods.List(t.Context(), options)
		if err != nil || pages > 3 {
			t.Fatalf("page %d: %v", pages, err)
		}
		for i := range page.Items {
			got = append(got, podKey(&page.Items[i]))
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	for i := range all.Items {
		if got[i] != podKey(&all.Items[i]) {
			t.Fatalf("Pod %d of the pages is %s, want %s", i, got[i], podKey(&all.Items[i]))
		}
	}
	one, err := client.CoreV1().Pods(Namespace(3)).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(one.Items) != 100 || one.Items[0].Namespace != Namespace(3) {
		t.Fatalf("%d Pods in one namespace, %v", len(one.Items), err)
	}
	if _, err := pods.List(t.Context(), metav1.ListOptions{Continue: "!"}); err == nil {
		t.Error("a wrong continue token returned no error")
	}
}

func TestWatchSendsChangesAndBookmarks(t *testing.T) {
	member, client := startMember(t, Options{Pods: 100, Namespaces: 2, Bookmark: 10 * time.Millisecond})
	list, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	member.Change(10, 1) // before the watch
	watcher, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	member.Change(20, 2)
	var changes []string
	last := ""
	for event := range watcher.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			t.Fatalf("event %v", event)
		}
		if event.Type == watch.Bookmark && len(changes) == 2 {
			if pod.ResourceVersion != last {
				t.Errorf("the bookmark has the version %s, want %s", pod.ResourceVersion, last)
			}
			break
		}
		if event.Type == watch.Modified {
			last = pod.ResourceVersion
			changes = append(changes, fmt.Sprintf("%t %t %s", podKey(pod) == podKey(&list.Items[10]), podKey(pod) == podKey(&list.Items[20]), pod.Annotations[ChangeAnnotation]))
		}
	}
	if want := []string{"true false 1", "false true 2"}; !slices.Equal(changes, want) {
		t.Errorf("changes %v, want %v", changes, want)
	}
	again, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil || again.Items[20].Annotations[ChangeAnnotation] != "2" || again.Items[20].ResourceVersion != last || again.ResourceVersion != last {
		t.Errorf("the list after the changes: %v, %v", again.ListMeta, err)
	}
}

func TestFixedResponses(t *testing.T) {
	member, client := startMember(t, Options{Pods: 1, Namespaces: 1})
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{}, metav1.CreateOptions{})
	if err != nil || !review.Status.Allowed {
		t.Errorf("review %+v, %v", review, err)
	}
	system, err := client.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	if err != nil || string(system.UID) != member.ID() {
		t.Errorf("kube-system %v, %v", system, err)
	}
	resources, err := client.Discovery().ServerResourcesForGroupVersion("v1")
	if err != nil || len(resources.APIResources) != 1 {
		t.Errorf("resources %v, %v", resources, err)
	}
	response, err := member.Client().Get(member.URL + "/api/v1/nodes")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("nodes: %s", response.Status)
	}
}
