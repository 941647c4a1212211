#!/bin/bash
# The first process of a node, in a container. Its environment variables are NODE (its
# name), IP, PODS (its pods' addresses), CLUSTER (all pods' and services'), SERVICES,
# DNS, PAUSE (the pause image), ROUTES ("PODS IP" of each other node, separated by commas)
# and CONTROL (whether the control plane runs here). /pki has the certificates, and
# /opt/trawl the programs. Each node is a zone of its own. All but that of the control
# plane have the label pool=workers.
set -eu
mount --make-rshared /
mkdir -p /etc/cni/net.d /etc/containerd /usr/local/bin /usr/sbin /var/log/node /volumes /run/trawl
echo "root:x:0:0::/root:/bin/bash" > /etc/passwd
for c in kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl; do
	ln -sf /opt/trawl/kubernetes "/usr/local/bin/$c"
done
for c in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
	ln -sf xtables-nft-multi "/usr/sbin/$c"
done
echo 1 > /proc/sys/net/ipv4/ip_forward

# Each node has routes to the pods of the other nodes.
IFS=, read -ra routes <<< "$ROUTES"
for r in "${routes[@]}"; do
	read -r pods ip <<< "$r"
	ip route replace "$pods" via "$ip"
done
iptables -P FORWARD ACCEPT
iptables -t nat -C POSTROUTING -s "$PODS" ! -d "$CLUSTER" -j MASQUERADE 2>/dev/null ||
	iptables -t nat -A POSTROUTING -s "$PODS" ! -d "$CLUSTER" -j MASQUERADE
cat > /etc/cni/net.d/10-pods.conflist <<END
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": false,
   "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": "$PODS"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
cat > /etc/containerd/config.toml <<END
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "$PAUSE"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
END

# Pods run under the container's own cgroup, so that they are frozen and killed with it.
group=/
while IFS=: read -r _ controllers path; do
	[ "$controllers" = memory ] || [ -z "$controllers" ] && group=$path
done < /proc/self/cgroup
cat > /run/trawl/kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {x509: {clientCAFile: /pki/ca.crt}, webhook: {enabled: true}, anonymous: {enabled: false}}
authorization: {mode: Webhook}
tlsCertFile: /pki/$NODE.crt
tlsPrivateKeyFile: /pki/$NODE.key
clusterDNS: [$DNS]
clusterDomain: cluster.local
resolvConf: /etc/resolv.conf
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: $group
failCgroupV1: false
failSwapOn: false
evictionHard: {nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
nodeStatusUpdateFrequency: 3s
nodeLeaseDurationSeconds: 10
END
cat > /run/trawl/proxy.yaml <<END
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: /pki/kube-proxy.conf}
mode: iptables
clusterCIDR: $CLUSTER
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
hostnameOverride: $NODE
END

# keep starts a program and restarts it whenever it ends.
keep() {
	local log=/var/log/node/$1.log
	shift
	(while true; do "$@" >> "$log" 2>&1 || true; sleep 0.5; done) &
}
keep containerd containerd
if [ "$CONTROL" = yes ]; then
	keep etcd /opt/trawl/etcd --data-dir /var/lib/etcd --unsafe-no-fsync
	keep kube-apiserver kube-apiserver --advertise-address "$IP" --etcd-servers http://127.0.0.1:2379 \
		--service-cluster-ip-range "$SERVICES" --client-ca-file /pki/ca.crt \
		--tls-cert-file /pki/apiserver.crt --tls-private-key-file /pki/apiserver.key \
		--kubelet-client-certificate /pki/admin.crt --kubelet-client-key /pki/admin.key \
		--kubelet-preferred-address-types InternalIP \
		--service-account-issuer https://kubernetes.default.svc.cluster.local \
		--service-account-key-file /pki/accounts.crt --service-account-signing-key-file /pki/accounts.key \
		--authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
		--feature-gates PodTopologyLabelsAdmission=true \
		--default-unreachable-toleration-seconds 10 --default-not-ready-toleration-seconds 10
	keep kube-controller-manager kube-controller-manager --kubeconfig /pki/controllers.conf \
		--service-account-private-key-file /pki/accounts.key --root-ca-file /pki/ca.crt \
		--use-service-account-credentials --node-monitor-grace-period 15s --leader-elect=false
	keep kube-scheduler kube-scheduler --kubeconfig /pki/scheduler.conf --leader-elect=false
fi
pool=workers
[ "$CONTROL" = yes ] && pool=control
keep kubelet kubelet --config /run/trawl/kubelet.yaml --kubeconfig "/pki/$NODE.conf" --hostname-override "$NODE" --node-ip "$IP" \
	--node-labels "topology.kubernetes.io/zone=zone-$NODE,pool=$pool"
keep kube-proxy kube-proxy --config /run/trawl/proxy.yaml
trap 'exit 0' TERM
while true; do sleep 3600 & wait $!; done
