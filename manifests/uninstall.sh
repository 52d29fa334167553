#!/bin/sh
# Takes Sluice out of a cluster, whether or not its manager still runs. Queues, flavors and Workloads
# are deleted with it; Jobs stay: those that run go on running, those that waited stay suspended until
# somebody sets spec.suspend to false.
#
#   manifests/uninstall.sh [flags for kubectl, such as --kubeconfig FILE or --context NAME]
set -eu
folder=$(dirname "$0")

# First what could refuse the steps below: the webhook has nobody behind it any more.
kubectl "$@" delete --ignore-not-found \
    -f "$folder/base/webhook-mutating.yaml" -f "$folder/base/webhook-validating.yaml"
kubectl "$@" delete --ignore-not-found --namespace sluice-system deployment/sluice-manager

kinds=$(kubectl "$@" get customresourcedefinitions -o name | grep '\.kueue\.x-k8s\.io$' || true)
for kind in $kinds; do
    plural=${kind#*/}
    # Objects stored in an older version must not need the webhook's conversion to be deleted.
    kubectl "$@" patch "$kind" --type=merge \
        --patch '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'
    # Finalizers are the manager's to remove, and it is gone.
    kubectl "$@" get "$plural" --all-namespaces --ignore-not-found \
        -o go-template='{{range .items}}{{if .metadata.finalizers}}{{with .metadata.namespace}}{{.}}{{else}}-{{end}} {{.metadata.name}}{{"\n"}}{{end}}{{end}}' |
        while read -r namespace name; do
            if [ "$namespace" = - ]; then
                kubectl "$@" patch "$plural" "$name" --type=merge \
                    --patch '{"metadata":{"finalizers":null}}'
            else
                kubectl "$@" patch "$plural" "$name" --namespace "$namespace" --type=merge \
                    --patch '{"metadata":{"finalizers":null}}'
            fi
        done
done

# Everything else, and with the definitions every object of theirs. The namespace goes by itself.
kubectl "$@" delete --ignore-not-found --wait=false -k "$folder/base"
