# TPC-B for PEERS_PURGE_SECONDS (600) with a retention so short that the log is purged all the time, and for a third of that with one
# so long that it never is, in turns (-n), so that a drift of the machine cancels. Ratio: p99 of the transactions' latency.
# Target: at most 1.2, and the tables of the log bounded.

length=${PEERS_PURGE_SECONDS:-600}
log_tables='onerepl.change_0 onerepl.change_1 onerepl.change_2 onerepl.change_3'
small_tables='onerepl.batch onerepl.sent_progress onerepl.journal_entry'

extra_conf() {
	echo "onerepl.log_retention = 0"
	echo "onerepl.journal_retention = 60"
}

set_retention() {
	a -c "ALTER SYSTEM SET onerepl.log_retention = $1" -c 'SELECT pg_reload_conf()' >>"$dir/setup.log"
}

# size_of TABLES: MB.
size_of() {
	a -c "SELECT sum(pg_total_relation_size(t::regclass)) / 1048576.0 FROM unnest(string_to_array('$1', ' ')) AS t"
}

# load SECONDS WHICH: TPC-B; the latencies are added to $dir/WHICH, the sizes to $dir/sizes.WHICH, one line every 2 s.
load() {
	local loader
	rm -f "$dir"/latency.*
	(cd "$dir" && exec pgbench -n -c 4 -j 2 -R "${PEERS_PURGE_RATE:-300}" -T "$1" -l --log-prefix=latency -p "$port_a" bench >load.log 2>&1) &
	loader=$!
	while kill -0 $loader 2>/dev/null; do
		echo "$(size_of "$log_tables") $(size_of "$small_tables")" >>"$dir/sizes.$2"
		sleep 2
	done
	wait $loader
	cat "$dir"/latency.* >>"$dir/$2"
}
# p99 WHICH: ms.
p99() { awk '{ print $3 }' "$dir/$1" | sort -n | awk '{ all[NR] = $1 } END { printf "%.3f", all[int(NR * 0.99)] / 1000 }'; }
# half first|second COLUMN: largest size in that half of the run.
half() {
	awk -v half="$1" -v column="$2" '{ size[NR] = $column }
		END {
			for (i = 1; i <= NR; i++) if ((i <= NR / 2) == (half == "first") && size[i] > most) most = size[i]
			printf "%.1f", most
		}' "$dir/sizes.with"
}

measure() {
	local r without with which
	begin_peer onerepl
	peer_setup
	link_start
	mark && await_mark
	load 5 warm
	for ((r = 1; r <= rounds; r++)); do
		set_retention 86400
		load $((length / rounds / 3)) without
		set_retention 0
		sleep 5
		load $((length / rounds)) with
	done
	without=$(p99 without) with=$(p99 with)
	result purge_p99_without 1 "$without" ms
	result purge_p99_with 1 "$with" ms
	result purge_p99_ratio 1 "$(calc "$with / $without")" x
	for which in first second; do
		result "log_size_${which}_half" 1 "$(half $which 1)" MB
		result "batch_position_journal_size_${which}_half" 1 "$(half $which 2)" MB
	done
}
